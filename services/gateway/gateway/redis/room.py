"""Whether Redis has room for new work: looked at every few seconds, so that what it holds can still be done."""

import time
from typing import Final

from redis.asyncio import Redis

from gateway.redis.connection import redis_state
from memloop.wire.errors import Unavailable

_EVERY_S: Final = 2.0
_RETRY_AFTER_S: Final = 5.0


class RedisRoom:
    """Refuses new work while Redis uses more than ``share`` of its memory; the rest is for work that is queued."""

    def __init__(self, redis: Redis, *, share: float) -> None:
        self._redis = redis
        self._share = share
        self._looked_at = float("-inf")
        self._is_full = False

    async def check(self) -> None:
        """Asks Redis when the last look is two seconds old, or found it full.

        Raises Unavailable while Redis is full, and when it cannot be reached.
        """
        now = time.monotonic()
        if self._is_full or now - self._looked_at >= _EVERY_S:
            self._looked_at = now
            state = await redis_state(self._redis)
            self._is_full = state.used_bytes > self._share * state.limit_bytes > 0
        if self._is_full:
            raise Unavailable("Redis is nearly full and takes no new work.", retry_after_s=_RETRY_AFTER_S)
