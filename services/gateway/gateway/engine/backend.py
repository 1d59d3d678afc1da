"""Bundles the engines and the model that the loops call into one value."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from gateway.engine.breaker import Breaker, EngineGuard
from gateway.engine.engines import Engines
from gateway.engine.served import LoopModel, loop_model
from gateway.metrics import Metrics
from gateway.settings import GatewaySettings, secret_of
from memloop.clients import EngineClient, InferenceClient, Timeouts


@dataclass(frozen=True, slots=True)
class Backend:
    """The engines behind this process. ``engines.complete`` calls ``served``; a chat request names its own model."""

    engines: Engines
    served: LoopModel
    metrics: Metrics
    heartbeat_s: float


@asynccontextmanager
async def open_backend(settings: GatewaySettings, metrics: Metrics) -> AsyncGenerator[Backend]:
    """Open the configured engines and close them on exit. Waits and raises as ``loop_model`` does."""
    async with AsyncExitStack() as stack:
        inference = await stack.enter_async_context(_inference(settings)) if settings.inference_url else None
        clients = [await stack.enter_async_context(_engine(settings, url)) for url in settings.engines]
        guards = [EngineGuard(client, _breaker(settings, metrics, place)) for place, client in enumerate(clients)]
        engines = Engines(guards, on_fallback=metrics.upstream_fallback.inc)
        served = await loop_model(settings, engines, inference)
        yield Backend(engines.of_model(served.id), served, metrics, settings.heartbeat_s)


async def backend_of(request: Request) -> Backend:
    """Returns the slice from the application's state."""
    return cast(Backend, request.app.state.backend)


BackendDep: TypeAlias = Annotated[Backend, Depends(backend_of)]


def _engine(settings: GatewaySettings, url: str) -> EngineClient:
    return EngineClient(
        url,
        model="",
        api_key=secret_of(settings.engine_api_key),
        timeouts=Timeouts(
            connect_s=settings.engine_connect_timeout_s,
            read_s=settings.engine_read_timeout_s,
            total_s=settings.engine_total_timeout_s,
        ),
        dialect=settings.engine_dialect,
    )


def _breaker(settings: GatewaySettings, metrics: Metrics, place: int) -> Breaker:
    breaker = Breaker(failures=settings.engine_breaker_failures, open_s=settings.engine_breaker_open_s)
    metrics.watch_circuit(place, lambda: breaker.is_open)
    return breaker


def _inference(settings: GatewaySettings) -> InferenceClient:
    return InferenceClient(settings.inference_url or "")
