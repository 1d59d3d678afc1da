"""Retries calls to an endpoint; the only retries in the trainer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from memloop.wire.errors import EngineError, MemloopError

T = TypeVar("T")
_FINAL = frozenset({400, 401, 403, 404, 413, 422})
_LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of attempts, and the pause after the first failure, which doubles after each further one."""

    attempts: int = 4
    pause_s: float = 1.0

    async def get(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of ``work``. Raises the last MemloopError, and a non-retryable one at once."""
        pause_s = self.pause_s
        for _ in range(self.attempts - 1):
            try:
                return await work()
            except MemloopError as error:
                if _status(error) in _FINAL:
                    raise
                await asyncio.sleep(min(max(pause_s, error.retry_after_s or 0.0), _LONGEST_PAUSE_S))
                pause_s *= 2
        return await work()


def _status(error: MemloopError) -> int:
    """Return the peer's own status, for example an engine's 401, which our clients would see as a 502."""
    return error.engine_status if isinstance(error, EngineError) else error.http_status
