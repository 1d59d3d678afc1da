"""Runs background tasks and cancels them at the end; computes long things in a thread; drains a stopping process.

A stopping process drains its connections so that no client's request fails. On SIGTERM ``/readyz`` returns 503, so that
load balancers send nothing new, and every response carries ``Connection: close``; requests that still arrive are
served. That lasts for ``drain_s`` seconds after the last response whose head was sent before the signal: its client may
use the connection once more. Then the process stops listening, closes idle connections, and gives requests in flight
the rest of ``stop_grace_s``.
"""

import asyncio
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import uvicorn

from memloop.wire.errors import DependencyError

_CANCEL_AGAIN_S: Final = 0.2
_INLINE_CHARS: Final = 20_000
"""Texts up to this length are counted or redacted in about 2 ms."""
INLINE_BYTES: Final = 16_384
"""Bodies up to this length are parsed on the event loop: a thread would take longer."""
_BODIES: Final = ThreadPoolExecutor(1, "bodies")
"""A second thread would only contend for the interpreter, and hold the objects of a second body."""
_LONG_S: Final = 0.004
_REST: Final = 3.0
_MOST_REST_S: Final = 0.5
_Result = TypeVar("_Result")


@asynccontextmanager
async def alongside(*chores: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run the coroutines in the background; cancel them and wait on exit."""
    tasks = {asyncio.create_task(chore) for chore in chores}
    try:
        yield
    finally:
        await ended(tasks)


@asynccontextmanager
async def renewed(renew: Callable[[], Awaitable[None]], *, every_s: float) -> AsyncGenerator[None]:
    """Renew a lease during the block. A renewal that the state does not take is made up for by the next one."""

    async def renew_again() -> None:
        while True:
            await asyncio.sleep(every_s)
            with suppress(DependencyError):
                await renew()

    async with alongside(renew_again()):
        yield


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, _Result]) -> "AsyncGenerator[asyncio.Task[_Result]]":
    """Run the coroutine while the block does something else; cancel it if the block leaves before its end."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        await ended({task})


async def ended(tasks: "set[asyncio.Task[Any]]") -> None:
    """Cancel the tasks until all have ended: a connection being opened may swallow the first cancellation."""
    while tasks := {task for task in tasks if not task.done()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_CANCEL_AGAIN_S)


async def computed(work: Callable[[], _Result], *, chars: int) -> _Result:
    """Compute with so many characters of text: on the event loop if they are few, else in a thread."""
    return work() if chars <= _INLINE_CHARS else await asyncio.to_thread(work)


async def parsed(work: Callable[[], _Result], *, size: int) -> _Result:
    """Parse a body of so many bytes: on the event loop if it is short, else in the thread of long ones.

    A parser holds the interpreter as long as it takes. So the thread rests after a long one, three times its length:
    the event loop meets a held interpreter in a quarter of its turns at most.
    """
    if size <= INLINE_BYTES:
        return work()

    def rested() -> _Result:
        began = time.thread_time()
        try:
            return work()
        finally:
            if (took_s := time.thread_time() - began) > _LONG_S:
                time.sleep(min(_REST * took_s, _MOST_REST_S))

    return await asyncio.get_running_loop().run_in_executor(_BODIES, rested)


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
