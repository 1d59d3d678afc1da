"""``/metrics``, and the one metric that every process has: how late its event loop runs."""

import asyncio
from typing import Final

from fastapi import APIRouter
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    GCCollector,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from starlette.responses import Response

_TEXT: Final = {"text/plain": {"schema": {"type": "string"}}}
_EVERY_S: Final = 0.25
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


def new_registry() -> CollectorRegistry:
    """A registry of a process's own, with its memory, file handles and collector."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def metrics_route(registry: CollectorRegistry) -> APIRouter:
    """``GET /metrics`` in Prometheus's text format."""
    router = APIRouter(tags=["health"])

    @router.get("/metrics", response_class=Response, responses={200: {"content": _TEXT}})
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    _ = metrics
    return router


async def watch_loop(registry: CollectorRegistry) -> None:
    """Measure for ever how much later than asked the event loop wakes a sleeper."""
    lag = Histogram("event_loop_lag_seconds", "Delay of the event loop's timers", registry=registry, buckets=_BUCKETS)
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _EVERY_S
        await asyncio.sleep(_EVERY_S)
        lag.observe(max(0.0, loop.time() - due))
