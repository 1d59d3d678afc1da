"""Limits the work that clients may give: by Redis's memory, by a tenant's queued bytes, and by a key's use per minute.

Redis is read every few seconds, so that it can still do the work that it holds. While it is nearly full it takes no new
work.

A sliding window, which all replicas share, limits a key's requests and tokens per minute. It is a hash of counts per
second with at most 61 fields of each kind. A count expires 60 to 61 seconds after it was made, never early. Tokens are
estimated on admission and corrected once the usage is known. A request that alone exceeds the token limit is admitted
when the window is empty.
"""

import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from memloop.wire.errors import RateLimited, Unavailable
from memloop_state.connecting import servers
from memloop_state.link import State, redis_errors, tags_of
from memloop_state.steps import Steps

_EVERY_S: Final = 2.0
_RETRY_AFTER_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class RedisState:
    """Memory and durability of Redis: of its fullest primary.

    ``limit_bytes`` is ``maxmemory``, or the machine's memory if unset. ``durable``: the append-only file works.
    """

    used_bytes: int
    limit_bytes: int
    durable: bool
    primaries: int = 1


class Room:
    """Refuses new work while Redis uses more than ``share`` of its memory; the rest is for work that is queued.

    The jobs of one tenant may hold ``tenant_share`` of that share.
    """

    def __init__(self, redis: State, *, share: float, tenant_share: float = 1.0) -> None:
        self._redis: Any = redis
        self._partitions = len(tags_of(redis))
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


@dataclass(frozen=True, slots=True)
class QueueRules:
    """The rules for the jobs of clients. Without ``room`` all are admitted.

    ``refused`` is called with the queue and ``quota`` or ``unavailable`` for each job that is not.
    """

    weights: Mapping[str, int] = field(default_factory=dict[str, int])
    room: Room | None = None
    refused: Callable[[str, str], None] = lambda queue, reason: None

    @asynccontextmanager
    async def admitting(self, queue: str) -> AsyncGenerator[int]:
        """Yield the bytes of jobs that one tenant may have queued in a partition (0 is no limit), and count refusals.

        Raises Unavailable while Redis is nearly full.
        """
        try:
            yield 0 if self.room is None else await self.room.check()
        except (RateLimited, Unavailable) as error:
            self.refused(queue, "quota" if isinstance(error, RateLimited) else "unavailable")
            raise


async def redis_state(redis: State) -> RedisState:
    """Read ``INFO`` of every primary. Returns the fullest one, durable if all are. Raises Unavailable."""
    with redis_errors():
        infos: list[Mapping[str, Any]] = [await server("INFO") for server in await servers(redis, primaries=True)]
    states = [
        RedisState(
            used_bytes=info.get("used_memory", 0),
            limit_bytes=info.get("maxmemory", 0) or info.get("total_system_memory", 0),
            durable=info.get("aof_enabled") == 1 and info.get("aof_last_write_status") == "ok",
        )
        for info in infos
    ]
    fullest = max(states, key=lambda state: state.used_bytes / max(1, state.limit_bytes))
    return replace(fullest, durable=all(state.durable for state in states), primaries=len(states))


_KEEP_S: Final = 61


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits per minute and key; 0 means unlimited."""

    requests: int = 0
    tokens: int = 0


UNLIMITED: Final = RateLimits()


@dataclass(frozen=True, slots=True)
class Standing:
    """A key's usage after a request. A ``wait_*_s`` above 0 rejects it: the seconds until it would be admitted."""

    wait_requests_s: int
    wait_tokens_s: int
    used_requests: int
    used_tokens: int
    reset_requests_s: int
    reset_tokens_s: int
    second: int
    """When the request was admitted, by Redis's clock."""
    charged: int
    """The tokens counted until the request is settled."""

    @property
    def wait_s(self) -> int:
        """Seconds until the request would be admitted."""
        return max(self.wait_requests_s, self.wait_tokens_s)


class Rates:
    """The windows of all keys. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State, limits: RateLimits) -> None:
        self.limits = limits
        self._steps = Steps(redis, "access")

    async def admit(self, bucket: str, *, tokens: int) -> Standing:
        """Count one request and its tokens; a request over a limit is rejected and not counted."""
        args = [self.limits.requests, self.limits.tokens, tokens, _KEEP_S]
        return Standing(*map(int, await self._steps.rows("admit", [f"memloop:rate:{bucket}"], args)))

    async def settle(self, bucket: str, *, second: int, more: int) -> None:
        """Correct the token count that was made on admission in that ``second`` by ``more`` tokens, or fewer."""
        if more:
            await self._steps("settle", [f"memloop:rate:{bucket}"], [second, more, _KEEP_S])
