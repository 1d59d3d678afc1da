"""Opens the engines of every model and bundles them into one value."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, TypeAlias

from yarl import URL

from gateway.engine.engines import Engines
from gateway.engine.models import Models
from gateway.engine.models_file import ModelsConfig, ModelSpec
from gateway.engine.served import LoopModel, loop_model
from gateway.metrics import Metrics
from gateway.settings import GatewaySettings
from memloop.chores import alongside
from memloop.profiles import ProfileError
from memloop.wire.errors import DependencyError
from memloop_clients import Balancing, EngineClient, InferenceClient, Timeouts
from memloop_clients.balancing.resolving import plain
from memloop_service import connects_by, of_app

_POLL_S: Final = 0.5
_MISFIT_POLL_S: Final = 30.0
"""A profile that does not fit stays so until someone restarts the launcher; each look loads a tokenizer."""
_FIRST_LOOK_S: Final = 30.0
"""More than any service takes that answers at all."""


@dataclass(frozen=True, slots=True)
class Backend:
    """The models behind this process."""

    models: Models
    metrics: Metrics
    heartbeat_s: float
    takes_question: dict[str, bool] = field(default_factory=dict[str, bool])
    """Whether a model's engine takes the question for usage, by label, once a request has shown it."""


@asynccontextmanager
async def open_backend(config: ModelsConfig, settings: GatewaySettings, metrics: Metrics) -> AsyncGenerator[Backend]:
    """Open the configured engines and close them on exit.

    Models that are not there yet come later. Raises ProfileError when the profile and a model that is there do not fit.
    """
    metrics.expect_models([spec.id or "" for spec in config.specs] if config.roles else [""])
    models = Models(
        config.specs,
        config.roles,
        wait_s=settings.startup_wait_s,
        on_absent=lambda model_id: metrics.upstream_absent.labels(model_id).inc(),
    )
    tls = connects_by(settings)
    async with AsyncExitStack() as stack:
        late = [await _opening(spec, settings, stack, tls, metrics) for spec in config.specs]
        with suppress(TimeoutError):  # the process serves memory without any model
            async with asyncio.timeout(_FIRST_LOOK_S):
                failures = await asyncio.gather(*(_arrival(opening, models, metrics) for opening in late))
                for failure in failures:
                    if isinstance(failure, ProfileError):
                        raise failure
                late = [opening for opening, failure in zip(late, failures, strict=True) if failure is not None]
        await stack.enter_async_context(alongside(*(_later_arrival(opening, models, metrics) for opening in late)))
        yield Backend(models, metrics, settings.heartbeat_s)


BackendDep: TypeAlias = Annotated[Backend, of_app("backend")]


@dataclass(frozen=True, slots=True)
class _Opening:
    """A model's clients, before its services have named its parts."""

    spec: ModelSpec
    clients: Sequence[EngineClient]
    inference: InferenceClient | None

    async def model(self, metrics: Metrics) -> LoopModel:
        """Complete the model. Raises as ``loop_model`` does."""
        model = await loop_model(self.spec, Engines(self.clients), self.inference, metrics)
        for place, client in enumerate(self.clients):
            metrics.upstream_circuit_open.labels(model.label, place).set_function(client.is_suspended)
            metrics.replicas.watch(f"{model.label}/{place}", client.loads)
        counted = metrics.upstream_fallback.labels(model.label).inc
        return replace(model, engines=replace(model.engines, on_fallback=counted))


async def _opening(
    spec: ModelSpec, settings: GatewaySettings, stack: AsyncExitStack, tls: ssl.SSLContext | None, metrics: Metrics
) -> _Opening:
    launcher = InferenceClient(spec.inference_url, tls=tls) if spec.inference_url else None
    inference = await stack.enter_async_context(launcher) if launcher is not None else None
    clients: list[EngineClient] = []
    timeouts = Timeouts(
        connect_s=settings.engine_connect_timeout_s,
        read_s=settings.engine_read_timeout_s,
        total_s=settings.engine_total_timeout_s,
    )
    for place, url in enumerate(spec.engine_urls):
        balancing = balancing_of(spec, url, also=spec.replica_urls if place == 0 else (), settings=settings)
        balancing = replace(balancing, on_unresolved=metrics.upstream_unresolved.labels(spec.id or "").inc)
        key, dialect = spec.api_key, spec.dialect
        client = EngineClient(
            url, model="", api_key=key, timeouts=timeouts, dialect=dialect, balancing=balancing, tls=tls
        )
        clients.append(await stack.enter_async_context(client))
    return _Opening(spec, clients, inference)


async def _later_arrival(opening: _Opening, models: Models, metrics: Metrics) -> None:
    pause_s = _POLL_S
    while True:
        await asyncio.sleep(pause_s)
        failure = await _arrival(opening, models, metrics)
        if failure is None:
            return
        pause_s = _MISFIT_POLL_S if isinstance(failure, ProfileError) else _POLL_S


async def _arrival(opening: _Opening, models: Models, metrics: Metrics) -> DependencyError | ProfileError | None:
    """Take the model into service, or return the reason why it is not there."""
    try:
        models.arrived(await opening.model(metrics), configured=opening.spec.id or "")
    except (DependencyError, ProfileError) as error:
        models.missing(opening.spec.id or "", str(error))
        return error
    return None


def balancing_of(spec: ModelSpec, url: str, *, also: tuple[str, ...], settings: GatewaySettings) -> Balancing:
    """Return how to balance over an engine's replicas: by the readiness of a launcher beside it, else by its own."""
    failures, open_s = settings.engine_breaker_failures, settings.engine_breaker_open_s
    rules = Balancing(also=also, failures=failures, open_s=open_s, suspends_one=True)
    launcher = URL(spec.inference_url or "")
    if launcher.host is None or launcher.host not in {plain(URL(each)).host for each in (url, *also)}:
        return rules
    return replace(rules, ready_path="readyz", ready_port=launcher.port)
