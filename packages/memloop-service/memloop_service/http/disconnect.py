"""Cancels the work of a request whose client has disconnected."""

import asyncio
from types import TracebackType
from typing import cast

from starlette.types import Receive

from memloop_service.stepping import Steps


class ClientGone(Exception):
    """The client closed its connection and cannot receive the answer."""


async def wait_until_gone(receive: Receive) -> None:
    """Return when the client closes the connection. The request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


class StopWhenGone:
    """Cancels the block when the client disconnects, and raises ClientGone. Other cancellations pass through.

    The callbacks of the awaited futures drive the server's ``receive``, step by step. A task for it, cancelled and
    awaited at the end of every request, took a tenth of a short request's time (docs/decisions/0043).
    """

    def __init__(self, receive: Receive) -> None:
        self._steps = cast(Steps, wait_until_gone(receive).__await__())
        self._loop = asyncio.get_running_loop()
        self._over = False
        self._stopped = False

    def __enter__(self) -> None:
        worker = asyncio.current_task()
        if worker is None:
            raise RuntimeError("StopWhenGone needs a running task")
        self._worker = worker
        self._cancelled_before = worker.cancelling()
        self._step()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over = True
        self._steps.close()
        ours = self._stopped and self._worker.uncancel() <= self._cancelled_before
        if ours and isinstance(error, asyncio.CancelledError):
            raise ClientGone from None

    def _step(self, _: object = None) -> None:
        if self._over:
            return
        try:
            waits_for = next(self._steps)
        except StopIteration:
            self._loop.call_soon(self._stop)  # the worker may be the one that is running
        else:
            if waits_for is None:
                self._loop.call_soon(self._step)
            else:
                waits_for.add_done_callback(self._step)

    def _stop(self) -> None:
        if not self._over:
            self._stopped = True
            self._worker.cancel()
