"""Opens the engines of every model and bundles them into one value."""

import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from gateway.engine.breaker import Breaker, EngineGuard
from gateway.engine.engines import Engines
from gateway.engine.models import Models
from gateway.engine.models_file import ModelSpec, read_models
from gateway.engine.served import LoopModel, loop_model
from gateway.metrics import Metrics
from gateway.settings import GatewaySettings
from memloop.clients import EngineClient, InferenceClient, Timeouts


@dataclass(frozen=True, slots=True)
class Backend:
    """The models behind this process."""

    models: Models
    metrics: Metrics
    heartbeat_s: float


@asynccontextmanager
async def open_backend(settings: GatewaySettings, metrics: Metrics) -> AsyncGenerator[Backend]:
    """Open the configured engines and close them on exit. Raises as ``read_models`` and ``loop_model`` do."""
    config, deadline = read_models(settings), time.monotonic() + settings.startup_wait_s
    async with AsyncExitStack() as stack:
        models = [await _opened(spec, settings, metrics, stack, deadline) for spec in config.specs]
        yield Backend(Models(models, config.roles), metrics, settings.heartbeat_s)


async def backend_of(request: Request) -> Backend:
    """Returns the slice from the application's state."""
    return cast(Backend, request.app.state.backend)


BackendDep: TypeAlias = Annotated[Backend, Depends(backend_of)]


async def _opened(
    spec: ModelSpec, settings: GatewaySettings, metrics: Metrics, stack: AsyncExitStack, deadline: float
) -> LoopModel:
    inference = await stack.enter_async_context(InferenceClient(spec.inference_url)) if spec.inference_url else None
    clients = [await stack.enter_async_context(_engine(settings, spec, url)) for url in spec.engine_urls]
    breakers = [_breaker(settings) for _ in clients]
    guards = [EngineGuard(client, breaker) for client, breaker in zip(clients, breakers, strict=True)]
    model = await loop_model(spec, Engines(guards), inference, deadline=deadline)
    for place, breaker in enumerate(breakers):
        metrics.watch_circuit(model.label, place, breaker.is_open)
    counted = metrics.upstream_fallback.labels(model.label).inc
    return replace(model, engines=Engines(guards, model=model.engine_model, on_fallback=counted))


def _engine(settings: GatewaySettings, spec: ModelSpec, url: str) -> EngineClient:
    return EngineClient(
        url,
        model="",
        api_key=spec.api_key,
        timeouts=Timeouts(
            connect_s=settings.engine_connect_timeout_s,
            read_s=settings.engine_read_timeout_s,
            total_s=settings.engine_total_timeout_s,
        ),
        dialect=spec.dialect,
    )


def _breaker(settings: GatewaySettings) -> Breaker:
    return Breaker(failures=settings.engine_breaker_failures, open_s=settings.engine_breaker_open_s)
