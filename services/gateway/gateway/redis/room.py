"""Whether Redis has room for new work: looked at every few seconds, so that what it holds can still be done."""

import math
import time
from typing import Final

from redis.asyncio import Redis

from gateway.redis.connection import redis_state
from gateway.redis.key_names import Keys
from memloop.wire.errors import Unavailable

_EVERY_S: Final = 2.0
_RETRY_AFTER_S: Final = 5.0


class RedisRoom:
    """Refuses new work while Redis uses more than ``share`` of its memory; the rest is for work that is queued.

    The jobs of one tenant may hold ``tenant_share`` of that share.
    """

    def __init__(self, redis: Redis, *, share: float, tenant_share: float = 1.0) -> None:
        self._redis = redis
        self._partitions = len(Keys(redis).partitions)
        self._share = share
        self._tenant_share = tenant_share
        self._looked_at = float("-inf")
        self._is_full = False
        self._tenant_bytes = 0

    async def check(self) -> int:
        """Return the bytes that one tenant's jobs may hold in one partition; 0 if Redis reports no memory size.

        Asks Redis when the last look is two seconds old, or found it full. In a cluster each partition counts for
        itself: a primary's memory is divided by the number of its partitions.

        Raises Unavailable while Redis is full, and when it cannot be reached.
        """
        now = time.monotonic()
        if self._is_full or now - self._looked_at >= _EVERY_S:
            self._looked_at = now
            state = await redis_state(self._redis)
            usable_bytes = self._share * state.limit_bytes
            self._is_full = state.used_bytes > usable_bytes > 0
            of_tenant = self._tenant_share * usable_bytes * state.primaries / self._partitions
            self._tenant_bytes = math.ceil(of_tenant)
        if self._is_full:
            raise Unavailable("Redis is nearly full and takes no new work.", retry_after_s=_RETRY_AFTER_S)
        return self._tenant_bytes
