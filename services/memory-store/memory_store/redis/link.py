"""The connection to Redis, typed, with its failures translated once."""

import contextlib
from collections.abc import Generator
from typing import TypeAlias

from redis import exceptions
from redis.asyncio import Redis

from memloop.wire.errors import DependencyError, Unavailable
from memloop_service import redis_link

RedisLink: TypeAlias = Redis
_CONNECT_TIMEOUT_S = 2.0
_READ_TIMEOUT_S = 5.0


def connect(url: str) -> RedisLink:
    """A lazy client whose replies are text: nothing is sent before the first command."""
    return redis_link.connect(url, connect_timeout_s=_CONNECT_TIMEOUT_S, read_timeout_s=_READ_TIMEOUT_S, decode=True)


@contextlib.contextmanager
def translated() -> Generator[None]:
    """Redis not reachable is 503, any other failure of it 502."""
    try:
        yield
    except (*redis_link.UNREACHABLE, exceptions.TimeoutError) as error:
        raise Unavailable(f"Redis cannot be reached: {error}", retry_after_s=1.0) from error
    except (exceptions.RedisError, exceptions.RedisClusterException) as error:
        if redis_link.is_passing(error):
            raise Unavailable(f"Redis cannot be reached: {error}", retry_after_s=1.0) from error
        raise DependencyError(f"Redis failed: {error}") from error
