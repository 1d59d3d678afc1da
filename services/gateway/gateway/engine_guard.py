"""Opens requests at one engine: one retry where nothing can have been sent, and no queue before an engine that is gone.

A connection that the engine refused carried nothing, so the request is tried once more, after a pause with jitter; the
client has seen nothing yet. No timeout is retried: the engine may be at work. Retries are a tenth of all calls at most,
after the first ten, so that they never double the load on an engine that comes up again.

After some connection failures in a row the circuit is open: requests are refused at once for a while. Then one of
them asks the engine for its models, while the others are still refused; if it answers, the circuit is closed.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import Final, Protocol

from memloop.clients import RawResponse
from memloop.wire.errors import ConnectRefused, MemloopError, Unavailable, Unreachable

_PAUSE_S: Final = (0.05, 0.25)
_PROBE_S: Final = 3.0
_MOST_RETRIES: Final = 10.0
_RETRIES_PER_CALL: Final = 0.1


class CircuitOpen(Unavailable):
    """The engine could not be reached again and again; it is not asked for a while."""

    default_code = "engine_circuit_open"


class Engine(Protocol):
    """What is guarded."""

    def stream_raw(self, body: bytes, *, path: str) -> AbstractAsyncContextManager[RawResponse]:
        """An open response."""
        ...

    async def check(self) -> None:
        """Raise unless the engine answers."""
        ...


class RetryBudget:
    """How many retries may be made: each call earns a tenth of one."""

    def __init__(self) -> None:
        self._left = _MOST_RETRIES

    def earn(self) -> None:
        """A call is made."""
        self._left = min(_MOST_RETRIES, self._left + _RETRIES_PER_CALL)

    def spend(self) -> bool:
        """Take one retry, if there is one."""
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Breaker:
    """Opens after ``failures`` connection failures in a row, for ``open_s`` seconds; then one probe decides."""

    def __init__(self, *, failures: int, open_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = failures
        self._open_s = open_s
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False

    async def admit(self, probe: Callable[[], Awaitable[None]]) -> None:
        """Return when a call may be made; ``probe`` asks the engine. Raises CircuitOpen, Unreachable."""
        if self._opened_at is None:
            return
        left_s = self._opened_at + self._open_s - self._clock()
        if left_s > 0 or self._probing:
            raise CircuitOpen("The engine cannot be reached.", retry_after_s=max(1.0, left_s))
        self._probing = True
        try:
            with self.watched():
                await probe()
        finally:
            self._probing = False

    @contextmanager
    def watched(self) -> Generator[None]:
        """Learn from an attempt whether the engine can be reached. Any answer of its own means that it can."""
        try:
            yield
        except Unreachable:
            self._failures += 1
            if self._failures >= self._most:
                self._opened_at = self._clock()
            raise
        except MemloopError:
            self._closed()
            raise
        else:
            self._closed()

    def _closed(self) -> None:
        self._failures = 0
        self._opened_at = None


class EngineGuard:
    """One engine behind its breaker and its retry budget."""

    def __init__(self, engine: Engine, breaker: Breaker, budget: RetryBudget | None = None) -> None:
        self._engine = engine
        self._breaker = breaker
        self._budget = budget or RetryBudget()

    @asynccontextmanager
    async def open(self, body: bytes, *, path: str) -> AsyncGenerator[RawResponse]:
        """An open response. Raises CircuitOpen, and what the engine's client raises."""
        async with AsyncExitStack() as opened:
            yield await self._answered(opened, body, path)

    async def _answered(self, opened: AsyncExitStack, body: bytes, path: str) -> RawResponse:
        self._budget.earn()
        try:
            return await self._tried(opened, body, path)
        except ConnectRefused:
            if not self._budget.spend():
                raise
        await asyncio.sleep(random.uniform(*_PAUSE_S))
        return await self._tried(opened, body, path)

    async def _tried(self, opened: AsyncExitStack, body: bytes, path: str) -> RawResponse:
        await self._breaker.admit(self._probe)
        with self._breaker.watched():
            return await opened.enter_async_context(self._engine.stream_raw(body, path=path))

    async def _probe(self) -> None:
        try:
            async with asyncio.timeout(_PROBE_S):
                await self._engine.check()
        except Unreachable:
            raise
        except TimeoutError as error:
            raise Unreachable("the engine does not answer") from error
        except MemloopError:
            return  # it is there, whatever it answers
