"""Retries calls to an endpoint. No other layer of the trainer retries."""

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
    """The number of attempts, and the pause after the first failure; each later pause is twice as long."""

    attempts: int = 4
    pause_s: float = 1.0

    async def get(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of ``work``. Raises the last MemloopError, and at once an error that a retry cannot mend."""
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
    """The peer's own status; an engine's 401 is one, though our clients would see a 502."""
    return error.engine_status if isinstance(error, EngineError) else error.http_status
