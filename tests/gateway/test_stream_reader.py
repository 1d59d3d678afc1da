"""The shared reader of event streams: whoever joins is read, at whatever moment."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, cast

from redis.asyncio import Redis

from gateway.long_read.streams import StreamReader
from tests.gateway.rig import eventually


class UnderWay:
    """A pipeline that answers with the status of each read, which the reader asks for once a second."""

    def __init__(self) -> None:
        self._asked = 0

    async def __aenter__(self) -> "UnderWay":
        return self

    async def __aexit__(self, *error: object) -> None: ...

    def execute_command(self, *command: str) -> None:
        self._asked += 1

    async def execute(self) -> list[list[str]]:
        return [["in_progress"]] * self._asked


class Quiet:
    """A Redis whose streams are empty: it answers at once where they end, and never that something came."""

    def __init__(self) -> None:
        self.looks: list[set[str]] = []

    async def xread(self, streams: Mapping[str, str], *, count: int, block: int) -> None:
        del count, block
        self.looks.append(set(streams))
        await asyncio.Event().wait()

    async def execute_command(self, command: str, *args: Any, **options: Any) -> Sequence[str]:
        """The last entry of a stream."""
        return []

    def pipeline(self, *, transaction: bool) -> UnderWay:
        return UnderWay()


async def test_a_stream_that_is_joined_while_the_wait_is_cut_short_is_read_with_the_next() -> None:
    redis, joined = Quiet(), set[str]()
    reader = StreamReader(cast(Redis, redis), wait_s=60)
    async with AsyncExitStack() as followers:
        while len(redis.looks) < 4:  # one in every turn of the loop, and so in each in which a wait ends
            joined.add(f"stream-{len(joined)}")
            await followers.enter_async_context(reader.joined(f"stream-{len(joined) - 1}", job="job"))
            await asyncio.sleep(0)
        await eventually(lambda: redis.looks[-1] == joined)
