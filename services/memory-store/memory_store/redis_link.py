"""The connection to Redis, typed, with its failures translated once."""

import contextlib
import hashlib
from collections.abc import Generator
from typing import TypeAlias

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from memloop.wire.errors import DependencyError, Unavailable

RedisLink: TypeAlias = Redis
_CONNECT_TIMEOUT_S = 2.0
_READ_TIMEOUT_S = 5.0


def connect(url: str) -> RedisLink:
    """A lazy client: nothing is sent before the first command."""
    return Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
        url,
        socket_connect_timeout=_CONNECT_TIMEOUT_S,
        socket_timeout=_READ_TIMEOUT_S,
        decode_responses=True,
    )


@contextlib.contextmanager
def translated() -> Generator[None]:
    """Redis not reachable is 503, any other failure of it 502."""
    try:
        yield
    except (RedisConnectionError, RedisTimeoutError) as error:
        raise Unavailable(f"Redis cannot be reached: {error}", retry_after_s=1.0) from error
    except RedisError as error:
        raise DependencyError(f"Redis failed: {error}") from error


def digest(*parts: str) -> str:
    """A short name for user-chosen text inside a Redis key."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:32]
