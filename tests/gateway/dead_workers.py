"""Dead workers: their silence is made to have lasted, so that no test waits for a lease to run out."""

import socket
from collections.abc import Mapping, Sequence
from typing import cast

from redis.asyncio import Redis

from memloop_state.queue.jobs import GROUP
from tests.gateway.redis_view import keys

_HOUR_MS = 3_600_000
_MOST = 1000


def consumer_of(pid: int) -> str:
    """How the names of a worker process's consumers begin."""
    return f"{socket.gethostname()}-{pid}-"


async def been_silent(redis: Redis, consumer: str) -> None:
    """Make the tickets of consumers whose name begins so look untouched for an hour: any worker may claim them."""
    for stream in await keys(redis, "*:jobs:*"):
        if await redis.type(stream) == b"stream" and await _has_group(redis, stream):
            await _age(redis, stream, consumer)


async def _has_group(redis: Redis, stream: str) -> bool:
    return bool(await redis.xinfo_groups(stream))


async def _age(redis: Redis, stream: str, consumer: str) -> None:
    found = cast(Sequence[Mapping[str, bytes]], await redis.xpending_range(stream, GROUP, "-", "+", _MOST))
    for pending in found:
        name = pending["consumer"].decode()
        if name.startswith(consumer):
            await redis.xclaim(stream, GROUP, name, 0, [pending["message_id"]], idle=_HOUR_MS, justid=True)
