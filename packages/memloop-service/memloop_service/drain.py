"""How a process that is told to stop takes leave of its clients, so that none of their requests fails.

On SIGTERM ``/readyz`` answers 503, so that whoever balances sends nothing new, and every answer says ``Connection:
close``; what still comes is served. That lasts for ``drain_s`` seconds after the last answer that could not say so any
more, because its head was sent before: its client may use the connection once more. Then the process listens no longer,
closes connections that nobody uses, and gives requests in flight what is left of ``stop_grace_s``.
"""

import signal
import time
from types import FrameType

import uvicorn


class Drain:
    """Whether the process is taking leave, and which clients do not know it. Times are of ``time.monotonic``."""

    def __init__(self) -> None:
        self._began_at: float | None = None
        self._untold = 0
        self._last_untold_at = 0.0

    @property
    def begun(self) -> bool:
        """Whether answers should say ``Connection: close``."""
        return self._began_at is not None

    def begin(self) -> None:
        """Take leave from now on."""
        if self._began_at is None:
            self._began_at = time.monotonic()

    def promised(self) -> None:
        """An answer begins whose client may use the connection again."""
        self._untold += 1

    def fulfilled(self) -> None:
        """Such an answer has ended."""
        self._untold -= 1
        if self.begun:
            self._last_untold_at = time.monotonic()

    def left_s(self, drain_s: float, grace_s: float) -> float | None:
        """Seconds that requests in flight may still take, once nothing new need be served; None before."""
        if self._began_at is None:
            return None
        now = time.monotonic()
        told = not self._untold and now - max(self._began_at, self._last_untold_at) >= drain_s
        over = now - self._began_at >= grace_s + drain_s
        return max(1.0, self._began_at + drain_s + grace_s - now) if told or over else None


class DrainingServer(uvicorn.Server):
    """A server that drains on its first SIGTERM. Any further signal, and SIGINT, ends it as uvicorn does."""

    def __init__(self, config: uvicorn.Config, drain: Drain, *, drain_s: float, grace_s: float) -> None:
        super().__init__(config)
        self._drain = drain
        self._drain_s = drain_s
        self._grace_s = grace_s

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal."""
        if sig == signal.SIGTERM and self._drain_s > 0 and self.started and not self._drain.begun:
            self._drain.begin()
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether to end."""
        left_s = self._drain.left_s(self._drain_s, self._grace_s)
        if left_s is not None and not self.should_exit:
            self.config.timeout_graceful_shutdown = round(left_s)
            super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)
