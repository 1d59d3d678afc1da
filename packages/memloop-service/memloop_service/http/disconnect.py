"""Cancels the work of a request whose client has disconnected."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.types import Receive


class ClientGone(Exception):
    """The client closed its connection and cannot receive the answer."""


@asynccontextmanager
async def stopped_when_gone(receive: Receive) -> AsyncGenerator[None]:
    """Cancel the block when the client disconnects, and raise ClientGone. Other cancellations pass through.

    The request's body must have been read.
    """
    scope = asyncio.timeout(None)

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.reschedule(asyncio.get_running_loop().time())

    watching = asyncio.create_task(watch())
    try:
        async with scope:
            try:
                yield
            finally:
                watching.cancel()  # or it would end a scope that is over
    except TimeoutError:
        if not scope.expired():
            raise
        raise ClientGone from None
    finally:
        await asyncio.wait({watching})
