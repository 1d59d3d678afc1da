"""Connects to Redis and reads its memory usage and durability, on which durable jobs depend."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from redis.asyncio import Redis

from gateway.settings import GatewaySettings
from memloop_service.redis_link import connect, redis_errors, servers


@dataclass(frozen=True, slots=True)
class RedisState:
    """Memory and durability of Redis: of its fullest primary.

    ``limit_bytes`` is ``maxmemory``, or the machine's memory if unset. ``durable``: the append-only file works.
    """

    used_bytes: int
    limit_bytes: int
    durable: bool
    primaries: int = 1


def redis_of(settings: GatewaySettings) -> Redis:
    """Return a client of the configured Redis or Redis Cluster; the caller enters and exits it."""
    url, timeout_s = settings.redis_url.get_secret_value(), settings.redis_timeout_s
    copies = settings.redis_ack_copies
    return connect(url, connect_timeout_s=timeout_s, read_timeout_s=timeout_s, ack_copies=copies)


async def redis_state(redis: Redis) -> RedisState:
    """Read ``INFO`` of every primary. Returns the fullest one, durable if all are. Raises Unavailable."""
    with redis_errors():
        states = [_state(await server("INFO")) for server in await servers(redis, primaries=True)]
    fullest = max(states, key=lambda state: state.used_bytes / max(1, state.limit_bytes))
    return replace(fullest, durable=all(state.durable for state in states), primaries=len(states))


def _state(info: Mapping[str, object]) -> RedisState:
    return RedisState(
        used_bytes=_number(info, "used_memory"),
        limit_bytes=_number(info, "maxmemory") or _number(info, "total_system_memory"),
        durable=bool(_number(info, "aof_enabled")) and info.get("aof_last_write_status") == "ok",
    )


def _number(info: Mapping[str, object], name: str) -> int:
    value = info.get(name)
    return value if isinstance(value, int) else 0
