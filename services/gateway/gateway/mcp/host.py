"""Holds the process's MCP server: it imports the server, with its SDK (24 MB), on the first request."""

import asyncio
from importlib import import_module
from typing import Self

from starlette.types import ASGIApp, Receive, Scope, Send


class McpHost:
    """Holds the SDK's server, which is made on the first request and closed with the process.

    The task that enters the SDK's task group must also exit it, so a dedicated task holds it open.
    """

    def __init__(self, *, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[ASGIApp] | None = None
        self._holder: asyncio.Task[None] | None = None

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._holder = asyncio.create_task(self._hold(self._ready), name="mcp")
        handle = await asyncio.shield(self._ready)
        await handle(scope, receive, send)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the server and the requests that still run."""
        self._stop.set()
        if self._holder is not None:
            await self._holder

    async def _hold(self, ready: asyncio.Future[ASGIApp]) -> None:
        try:
            await asyncio.to_thread(import_module, "gateway.mcp.server")  # takes 0.4 s
            from gateway.mcp.server import make_manager

            manager = make_manager(max_body_bytes=self._max_body_bytes)
        except Exception as failure:  # noqa: BLE001 - passed on to the waiting requests
            ready.set_exception(failure)
            return
        async with manager.run():
            ready.set_result(manager.handle_request)
            await self._stop.wait()
