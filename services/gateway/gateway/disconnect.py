"""Stops the work of a request whose client has gone."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from starlette.types import Receive


class ClientGone(Exception):
    """The client closed its connection; nobody reads the answer."""


async def wait_until_gone(receive: Receive) -> None:
    """Returns when the client closes the connection. The request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


@asynccontextmanager
async def stop_when_gone(receive: Receive) -> AsyncGenerator[None]:
    """Cancels what runs inside when the client goes, and raises ClientGone. A cancellation from outside stays one."""
    worker = asyncio.current_task()
    if worker is None:
        raise RuntimeError("stop_when_gone needs a running task")
    gone = asyncio.Event()
    cancelled_before = worker.cancelling()

    async def watch() -> None:
        await wait_until_gone(receive)
        gone.set()
        worker.cancel()

    watcher = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if gone.is_set() and worker.uncancel() <= cancelled_before:
            raise ClientGone from None
        raise
    finally:
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher
