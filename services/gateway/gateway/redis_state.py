"""What Redis tells of itself that matters to durable jobs: its memory, for it must not evict, and its file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from redis.asyncio import Redis

from gateway.lua import redis_errors


@dataclass(frozen=True, slots=True)
class RedisState:
    """``limit_bytes`` is its ``maxmemory``, or the machine's memory without one. ``durable``: its file is written."""

    used_bytes: int
    limit_bytes: int
    durable: bool


async def redis_state(redis: Redis) -> RedisState:
    """One ``INFO``. Raises Unavailable, Timeout."""
    with redis_errors():
        told = cast(Mapping[str, object], await redis.info())  # pyright: ignore[reportUnknownMemberType]
    return RedisState(
        used_bytes=_number(told, "used_memory"),
        limit_bytes=_number(told, "maxmemory") or _number(told, "total_system_memory"),
        durable=bool(_number(told, "aof_enabled")) and told.get("aof_last_write_status") == "ok",
    )


def _number(told: Mapping[str, object], name: str) -> int:
    value = told.get(name)
    return value if isinstance(value, int) else 0
