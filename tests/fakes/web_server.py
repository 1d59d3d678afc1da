"""A small aiohttp server on a free loopback port, for fakes of what stands behind HTTP."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Middleware

_STOP_S = 0.05


@asynccontextmanager
async def serving(
    routes: Sequence[web.RouteDef],
    *,
    middlewares: Sequence[Middleware] = (),
    max_body_bytes: int = 64 * 1024 * 1024,
    host: str = "127.0.0.1",
    port: int = 0,
) -> AsyncGenerator[str]:
    """Serves the routes; gives the base URL. A handler whose client leaves is cancelled, as in the real engine."""
    app = web.Application(client_max_size=max_body_bytes, middlewares=middlewares)
    app.add_routes(routes)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=_STOP_S, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    _, bound, *_ = runner.addresses[0]
    try:
        yield f"http://{host}:{bound}"
    finally:
        await runner.cleanup()
