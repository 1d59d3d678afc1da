"""Graceful shutdown: a stopping process drains its connections so that no client's request fails.

On SIGTERM ``/readyz`` returns 503, so that load balancers send nothing new, and every response carries ``Connection:
close``; requests that still arrive are served. That lasts for ``drain_s`` seconds after the last response whose head
was sent before the signal: its client may use the connection once more. Then the process stops listening, closes idle
connections, and gives requests in flight the rest of ``stop_grace_s``.
"""

import asyncio
import signal
import time
from typing import Final

import uvicorn

_LOOK_S: Final = 0.05


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

    def terminate(self, server: uvicorn.Server) -> None:
        """Start draining, or stop the server if that has begun."""
        if self._began_at is None:
            self._began_at = time.monotonic()
        else:
            server.handle_exit(signal.SIGTERM, None)

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


async def drained(server: uvicorn.Server, drain: Drain, *, drain_s: float, grace_s: float) -> None:
    """Drain a server once it has started: on its first SIGTERM. A second one, or SIGINT, stops it as in uvicorn."""
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(_LOOK_S)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, drain.terminate, server)
    while (left_s := drain.left_s(drain_s, grace_s)) is None:  # noqa: ASYNC110 - and a drain ends by the clock
        await asyncio.sleep(_LOOK_S)
    server.config.timeout_graceful_shutdown = round(left_s)
    server.handle_exit(signal.SIGTERM, None)
