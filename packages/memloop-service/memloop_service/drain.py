"""Graceful shutdown: a stopping process drains its connections so that no client's request fails.

On SIGTERM ``/readyz`` returns 503, so that load balancers send nothing new, and every response carries ``Connection:
close``; requests that still arrive are served. That lasts for ``drain_s`` seconds after the last response whose head
was sent before the signal: its client may use the connection once more. Then the process stops listening, closes idle
connections, and gives requests in flight the rest of ``stop_grace_s``.
"""

import signal
import time
from types import FrameType

import uvicorn


class Drain:
    """Tracks whether the process drains and which clients have not been notified. Times are of ``time.monotonic``."""

    def __init__(self) -> None:
        self._began_at: float | None = None
        self._untold = 0
        self._last_untold_at = 0.0

    @property
    def begun(self) -> bool:
        """Whether responses should carry ``Connection: close``."""
        return self._began_at is not None

    @property
    def ready(self) -> bool:
        """Whether the process may get new requests, as far as a drain is concerned."""
        return not self.begun

    def begin(self) -> None:
        """Start draining."""
        if self._began_at is None:
            self._began_at = time.monotonic()

    def promised(self) -> None:
        """Count a response that starts without ``Connection: close``: its client may reuse the connection."""
        self._untold += 1

    def fulfilled(self) -> None:
        """Count the end of such a response."""
        self._untold -= 1
        if self.begun:
            self._last_untold_at = time.monotonic()

    def left_s(self, drain_s: float, grace_s: float) -> float | None:
        """Return the seconds left for requests in flight once the drain is over; None before."""
        if self._began_at is None:
            return None
        now = time.monotonic()
        announced = not self._untold and now - max(self._began_at, self._last_untold_at) >= drain_s
        over = now - self._began_at >= grace_s + drain_s
        return max(1.0, self._began_at + drain_s + grace_s - now) if announced or over else None


class DrainingServer(uvicorn.Server):
    """A uvicorn server that drains on its first SIGTERM. A second signal, or SIGINT, stops it as in uvicorn."""

    def __init__(self, config: uvicorn.Config, drain: Drain, *, drain_s: float, grace_s: float) -> None:
        super().__init__(config)
        self._drain = drain
        self._drain_s = drain_s
        self._grace_s = grace_s

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start the drain, or stop on a further signal."""
        if sig == signal.SIGTERM and self._drain_s > 0 and self.started and not self._drain.begun:
            self._drain.begin()
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop; uvicorn calls it ten times a second."""
        left_s = self._drain.left_s(self._drain_s, self._grace_s)
        if left_s is not None and not self.should_exit:
            self.config.timeout_graceful_shutdown = round(left_s)
            super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)
