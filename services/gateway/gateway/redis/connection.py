"""The connection to Redis, and its memory and durability, on which durable jobs rest."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from redis.asyncio import Redis

from gateway.settings import GatewaySettings
from memloop_service.redis_link import connect, redis_errors, servers


@dataclass(frozen=True, slots=True)
class RedisState:
    """``limit_bytes`` is its ``maxmemory``, or the machine's memory without one. ``durable``: its file is written."""

    used_bytes: int
    limit_bytes: int
    durable: bool


def redis_of(settings: GatewaySettings) -> Redis:
    """The client of the Redis, or Redis Cluster, that the settings name; to be entered and left."""
    timeout_s = settings.redis_timeout_s
    return connect(settings.redis_url.get_secret_value(), connect_timeout_s=timeout_s, read_timeout_s=timeout_s)


async def redis_state(redis: Redis) -> RedisState:
    """One ``INFO``; of a cluster's primaries the fullest, durable if all are. Raises Unavailable."""
    with redis_errors():
        states = [_state(await server("INFO")) for server in await servers(redis, primaries=True)]
    fullest = max(states, key=lambda state: state.used_bytes / max(1, state.limit_bytes))
    return replace(fullest, durable=all(state.durable for state in states))


def _state(told: Mapping[str, object]) -> RedisState:
    return RedisState(
        used_bytes=_number(told, "used_memory"),
        limit_bytes=_number(told, "maxmemory") or _number(told, "total_system_memory"),
        durable=bool(_number(told, "aof_enabled")) and told.get("aof_last_write_status") == "ok",
    )


def _number(told: Mapping[str, object], name: str) -> int:
    value = told.get(name)
    return value if isinstance(value, int) else 0
