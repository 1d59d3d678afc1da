"""Serves ``/metrics`` on a port of its own, so that a network policy can open it to Prometheus alone."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from memloop_service.listening import listener
from memloop_service.serving import serving
from memloop_service.settings import ServiceSettings

_STOP_S = 1


@asynccontextmanager
async def metrics_served(app: FastAPI, settings: ServiceSettings) -> AsyncGenerator[None]:
    """Serve the app's metrics on ``metrics_port``, if set, during the block. Raises SystemExit for a taken port."""
    if settings.metrics_port is None:
        yield
        return
    config = serving(
        app.state.metrics,
        settings,
        refusals=app.state.refusals,
        own_port=False,
        lifespan="off",
        headers=[("cache-control", "no-store"), ("x-content-type-options", "nosniff")],
    )
    config.timeout_graceful_shutdown = _STOP_S
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    server.server_state.default_headers = config.encoded_headers
    bound = listener(settings, settings.metrics_port)
    await server.startup(sockets=[bound])
    try:
        yield
    finally:
        await server.shutdown(sockets=[bound])
