"""The store's connection to Redis, typed."""

import ssl
from typing import TypeAlias

from redis.asyncio import Redis

from memloop_state import link

RedisLink: TypeAlias = Redis
_CONNECT_TIMEOUT_S = 2.0
_READ_TIMEOUT_S = 5.0


def connect(url: str, *, ack_copies: int = 0, tls: ssl.SSLContext | None = None) -> RedisLink:
    """A lazy client whose replies are text: nothing is sent before the first command."""
    return link.connect(
        url,
        connect_timeout_s=_CONNECT_TIMEOUT_S,
        read_timeout_s=_READ_TIMEOUT_S,
        decode=True,
        ack_copies=ack_copies,
        tls=tls,
    )
