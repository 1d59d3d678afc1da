"""Requests begin a few at a time, callers in turn, whatever one of them sends at once."""

import asyncio
from collections.abc import Sequence

from starlette.types import Message, Receive, Scope, Send

from memloop_service.http import FairStart

FLOOD, OTHER = [(b"authorization", b"Bearer flood")], [(b"x-api-key", b"other")]
ALONE = [(b"accept", b"*/*")]


class Beginnings:
    """An app that notes who begins, and in which turn of the event loop."""

    def __init__(self) -> None:
        self.began: list[bytes] = []
        self.most_in_a_turn = 0
        self._in_this_turn = 0
        self.fair = FairStart(self._app)

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.began.append(scope["headers"][0][1])
        self._in_this_turn += 1
        self.most_in_a_turn = max(self.most_in_a_turn, self._in_this_turn)
        asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._in_this_turn = 0

    def ask(self, headers: Sequence[tuple[bytes, bytes]]) -> "asyncio.Task[None]":
        return asyncio.create_task(self._asked(headers))

    async def _asked(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        await self.fair({"type": "http", "headers": headers}, _nothing, _nowhere)


async def _nothing() -> Message:
    raise NotImplementedError


async def _nowhere(message: Message) -> None:
    raise NotImplementedError(message)


async def test_a_request_beside_a_burst_of_another_caller_begins_at_its_turn() -> None:
    it = Beginnings()
    await asyncio.gather(*(it.ask(FLOOD) for _ in range(200)), it.ask(OTHER))
    assert it.began.index(b"other") == 5
    assert (len(it.began), it.most_in_a_turn) == (201, 4)


async def test_requests_that_are_cancelled_while_they_wait_leave_their_turn_to_others() -> None:
    it = Beginnings()
    burst = [it.ask(FLOOD) for _ in range(20)]
    await asyncio.sleep(0)
    for task in burst[5::2]:
        task.cancel()
    await asyncio.wait([*burst, it.ask(OTHER)])
    assert sorted(it.began) == [b"Bearer flood"] * 12 + [b"other"]


async def test_a_caller_that_is_alone_begins_as_much_as_it_likes() -> None:
    it = Beginnings()
    await asyncio.gather(*(it.ask(ALONE) for _ in range(200)))
    assert it.most_in_a_turn == 200
