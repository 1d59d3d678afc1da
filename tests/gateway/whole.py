"""A gateway of two tenants with everything real behind it but the engine: worker, Redis, memory store."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.worker import working
from tests.fakes.job_engine import Body, EngineServer, Reply, engine_server
from tests.fakes.real_store import real_store
from tests.gateway.api_rig import TWO_TENANTS
from tests.gateway.rig import settings_for
from tests.gateway.running import Gateway, running_gateway


@dataclass(frozen=True)
class Whole:
    """The gateway and its engine."""

    gateway: Gateway
    engine: EngineServer


@asynccontextmanager
async def whole(
    redis_url: str, folder: Path, answer: Callable[[Body], Reply], *, hang_at: int | None = None, **changes: object
) -> AsyncGenerator[Whole]:
    """All of it, running; ``changes`` are settings."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(engine_server(answer, hang_at=hang_at))
        store = await stack.enter_async_context(real_store(redis_url, folder))
        given = {"engine_url": engine.url, "store_url": store, "api_keys": TWO_TENANTS, **changes}
        settings = settings_for(redis_url, **given)
        gateway = await stack.enter_async_context(running_gateway(settings))
        await stack.enter_async_context(working(gateway.work, settings))
        yield Whole(gateway, engine)
