"""Dead workers: their silence is made to have lasted, so that no test waits for a lease to run out."""

import socket

from redis.asyncio import Redis

from tests.gateway.redis_view import command, keys


def names_of(pid: int) -> str:
    """How the name of a worker process begins."""
    return f"{socket.gethostname()}-{pid}-"


async def been_silent(redis: Redis, name: str) -> None:
    """Make the lanes of workers whose name begins so look untouched since 1970: any worker may claim them."""
    for held in await keys(redis, "*:jobs:*:held"):
        here, _, queue = held.removesuffix(":held").partition("jobs:")
        for lane in await command(redis, "ZRANGE", held, "0", "-1"):
            holder = await command(redis, "GET", f"{here}lock:{queue.partition(':')[0]}:{lane}")
            if holder is not None and holder.partition("|")[2].startswith(name):
                await command(redis, "ZADD", held, "XX", "0", lane)
