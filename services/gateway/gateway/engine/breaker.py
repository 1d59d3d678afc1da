"""Guards one engine with a circuit breaker.

After several failures in a row the circuit opens and requests are refused at once for a while. Then one request probes
the engine by listing its models while the others are still refused; if the engine answers, the circuit closes. A
failure is a connection that cannot be opened or is lost before the answer begins, or a silence longer than the read
timeout.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from memloop.clients import EngineBusy, RawResponse
from memloop.ports import Completion, Prompt
from memloop.wire.chat import Json
from memloop.wire.errors import MemloopError, Timeout, Unavailable, Unreachable

_PROBE_S: Final = 3.0
Answer = TypeVar("Answer")


class CircuitOpen(Unavailable):
    """The engine was unreachable several times in a row; requests to it are suspended for a while."""

    default_code = "engine_circuit_open"


class Engine(Protocol):
    """The client of an engine, as a breaker guards it."""

    async def send_raw(self, body: bytes, *, path: str) -> RawResponse:
        """Send a POST and return the open response, which the caller closes."""
        ...

    async def ask(self, prompt: Prompt, *, model: str) -> Completion:
        """Return the model's reply."""
        ...

    async def get_json(self, path: str) -> Json:
        """Read a JSON resource, such as ``models``."""
        ...

    async def check(self) -> None:
        """Raise unless the engine answers."""
        ...


class Breaker:
    """Opens for ``open_s`` seconds after ``failures`` failures in a row; then one probe decides."""

    def __init__(self, *, failures: int, open_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = failures
        self._open_s = open_s
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False

    def is_open(self) -> bool:
        """Return whether requests to the engine are suspended."""
        return self._opened_at is not None

    async def admit(self, probe: Callable[[], Awaitable[None]]) -> None:
        """Return once a call may be made; ``probe`` checks the engine. Raises CircuitOpen, Unreachable."""
        if self._opened_at is None:
            return
        left_s = self._opened_at + self._open_s - self._clock()
        if left_s > 0 or self._probing:
            raise CircuitOpen("The engine cannot be reached.", retry_after_s=max(1.0, left_s))
        self._probing = True
        try:
            await self.watched(probe())
        finally:
            self._probing = False

    async def watched(self, attempt: Awaitable[Answer]) -> Answer:
        """Await an attempt and update the circuit. Any answer of the engine, even an error, counts as a success."""
        try:
            answer = await attempt
        except MemloopError as error:
            self._failed() if _is_gone(error) else self._closed()
            raise
        self._closed()
        return answer

    def _failed(self) -> None:
        self._failures += 1
        if self._failures >= self._most:
            self._opened_at = self._clock()

    def _closed(self) -> None:
        self._failures = 0
        self._opened_at = None


def _is_gone(error: MemloopError) -> bool:
    return isinstance(error, Unavailable | Timeout) and not isinstance(error, EngineBusy)


class EngineGuard:
    """One engine behind its breaker."""

    def __init__(self, engine: Engine, breaker: Breaker) -> None:
        self._engine = engine
        self._breaker = breaker

    async def call(self, ask: Callable[[Engine], Awaitable[Answer]]) -> Answer:
        """Call the engine through the breaker. Raises CircuitOpen, and the errors of the engine's client."""
        await self._breaker.admit(self.check)
        return await self._breaker.watched(ask(self._engine))

    async def check(self) -> None:
        """Raise Unreachable unless the engine answers, with any status."""
        try:
            async with asyncio.timeout(_PROBE_S):
                await self._engine.check()
        except Unreachable:
            raise
        except TimeoutError as error:
            raise Unreachable("the engine does not answer") from error
        except MemloopError:
            return
