"""A circuit breaker: it stops requests to a server that fails.

After several failures in a row the circuit opens and requests are refused at once for a while. Then one request probes
the server while the others are still refused; if the server answers, the circuit closes. A failure is a connection that
cannot be opened or is lost before the answer begins, or a silence longer than the read timeout.
"""

import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from memloop.wire.errors import MemloopError, Timeout, Unavailable


class CircuitOpen(Unavailable):
    """A server was unreachable several times in a row; requests to it are suspended for a while."""

    default_code = "engine_circuit_open"


class Breaker:
    """Opens for ``open_s`` seconds after ``failures`` failures in a row; then one probe decides.

    ``peer`` names the server in errors.
    """

    def __init__(
        self,
        *,
        failures: int,
        open_s: float,
        clock: Callable[[], float] = time.monotonic,
        peer: str = "engine",
    ) -> None:
        self._most = failures
        self._open_s = open_s
        self._clock = clock
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
            with self.watching():
                await probe()
        finally:
            self._probing = False

    @contextmanager
    def watching(self, *, counts_failures: bool = True) -> Generator[None]:
        """Update the circuit by an attempt. Any answer of the server, even an error, counts as a success.

        Without ``counts_failures`` the attempt can close the circuit, and not open it.
        """
        try:
            yield
        except MemloopError as error:
            if not isinstance(error, Unavailable | Timeout):
                self._failures, self._opened_at = 0, None
            elif counts_failures:
                self._failures += 1
                if self._failures >= self._most:
                    self._opened_at = self._clock()
            raise
        self._failures, self._opened_at = 0, None
