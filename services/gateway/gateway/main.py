"""The API process: reads the settings, builds the application, serves it. Run: ``python -m gateway.main``."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from fastapi import FastAPI, Request, Response
from starlette.middleware import Middleware

from gateway import mem0
from gateway.access import routes as admin
from gateway.access.denials import audit_denials
from gateway.access.rate_headers import RateHeaders
from gateway.access.static_keys import load_static_keys
from gateway.chat import routes as chat
from gateway.document import describe
from gateway.engine import routes as models
from gateway.files import routes as files
from gateway.http.disconnect import ClientGone
from gateway.long_read import routes as long_read
from gateway.mcp import routes as mcp
from gateway.mcp.host import McpHost
from gateway.memory import routes as memory
from gateway.metrics import Metrics
from gateway.services import Services, open_services
from gateway.settings import GatewaySettings
from gateway.traces import routes as traces
from memloop_service import RequestTimes, create_app, new_registry, refuse_open_listen, run, start_tracing

CLIENT_CLOSED_REQUEST = 499
FORM_BYTES = 1 << 16
"""What an upload's form may have around its file."""


def build_app(settings: GatewaySettings) -> FastAPI:
    """The application; it opens its services when it starts and closes them when it stops."""
    registry = new_registry()
    metrics = Metrics(registry)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with open_services(settings, metrics) as services, mcp_host(services) as host:
            app.state.services, app.state.mcp = services, host
            async with services.auditor.keeping(), services.keys.followed():
                yield

    async def redis_answers() -> object:
        return await _services(app).redis.ping()  # pyright: ignore[reportUnknownMemberType] - untyped keywords

    async def store_answers() -> object:
        return await _services(app).store.check()

    async def engine_answers() -> object:
        return await _services(app).engine.check()

    app = create_app(
        "gateway",
        settings=settings,
        routers=(
            chat.router,
            models.router,
            long_read.router,
            files.router,
            memory.router,
            mem0.router,
            mcp.router,
            admin.router,
            traces.router,
        ),
        readiness={"redis": redis_answers, "store": store_answers, "engine": engine_answers},
        registry=registry,
        larger_bodies={"/v1/files": settings.max_file_bytes + FORM_BYTES},
        lifespan=lifespan,
    )
    app.add_exception_handler(ClientGone, nobody_reads)
    audit_denials(app)
    app.openapi = describe(app)
    app.user_middleware.append(Middleware(RateHeaders))
    app.user_middleware.append(Middleware(RequestTimes, seconds=metrics.request_seconds))
    return app


def mcp_host(services: Services) -> McpHost:
    """The MCP server of the process."""
    return McpHost(max_body_bytes=services.settings.max_body_bytes, loopback_only=not services.keys.has_keys)


async def nobody_reads(request: Request, failure: Exception) -> Response:
    """The end of a request whose client has left: a status for the metrics."""
    del request, failure
    return Response(status_code=CLIENT_CLOSED_REQUEST)


def main() -> None:
    """Serve until a signal. Exits with a message when the settings are wrong or would serve memories unguarded."""
    settings = GatewaySettings()
    refuse_open_listen(settings.host, has_keys=bool(load_static_keys(settings)))
    start_tracing("gateway")
    run(build_app(settings), settings, drain_s=settings.drain_s)


def _services(app: FastAPI) -> Services:
    return cast(Services, app.state.services)


if __name__ == "__main__":
    main()
