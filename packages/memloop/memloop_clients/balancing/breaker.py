"""A circuit breaker: it stops requests to a server that fails.

After several failures in a row the circuit opens and requests are refused at once for a while. Then one request probes
the server while the others are still refused; if the server answers, the circuit closes. A failure is a connection that
cannot be opened or is lost before the answer begins, or a silence longer than the read timeout.
"""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from memloop.wire.errors import MemloopError, Timeout, Unavailable

Answer = TypeVar("Answer")


class CircuitOpen(Unavailable):
    """A server was unreachable several times in a row; requests to it are suspended for a while."""

    default_code = "engine_circuit_open"


class Breaker:
    """Opens for ``open_s`` seconds after ``failures`` failures in a row; then one probe decides.

    ``answers`` are errors that an answer caused, although they are kinds of Unavailable. ``peer`` names the server in
    errors.
    """

    def __init__(
        self,
        *,
        failures: int,
        open_s: float,
        clock: Callable[[], float] = time.monotonic,
        answers: tuple[type[MemloopError], ...] = (),
        peer: str = "engine",
    ) -> None:
        self._most = failures
        self._open_s = open_s
        self._clock = clock
        self._answers = answers
        self._peer = peer
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False

    def is_open(self) -> bool:
        """Return whether requests are suspended."""
        return self._opened_at is not None

    async def admit(self, probe: Callable[[], Awaitable[None]]) -> None:
        """Return once a call may be made; ``probe`` checks the server. Raises CircuitOpen, Unreachable."""
        if self._opened_at is None:
            return
        left_s = self._opened_at + self._open_s - self._clock()
        if left_s > 0 or self._probing:
            code = f"{self._peer.replace(' ', '_')}_circuit_open"
            raise CircuitOpen(f"The {self._peer} cannot be reached.", code=code, retry_after_s=max(1.0, left_s))
        self._probing = True
        try:
            await self.watched(probe())
        finally:
            self._probing = False

    async def watched(self, attempt: Awaitable[Answer]) -> Answer:
        """Await an attempt and update the circuit. Any answer of the server, even an error, counts as a success."""
        try:
            answer = await attempt
        except MemloopError as error:
            self._failed() if self._is_gone(error) else self._closed()
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

    def _is_gone(self, error: MemloopError) -> bool:
        return isinstance(error, Unavailable | Timeout) and not isinstance(error, self._answers)
