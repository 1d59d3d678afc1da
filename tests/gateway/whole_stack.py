"""API and worker over the real store and an engine that always answers, for tests that visit every route."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from gateway.worker import working
from tests.fakes.real_store import real_store
from tests.fakes.streaming_engine import MODEL, fake_engine
from tests.gateway.rig import settings_for
from tests.gateway.running import Gateway, running_gateway

STREAMS_END_AFTER_S = 0.5
"""A change feed has no end of its own."""


@asynccontextmanager
async def whole_stack(redis_url: str, folder: Path, *, api_keys: str) -> AsyncGenerator[Gateway]:
    """A gateway whose every route answers in a bounded time."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(fake_engine())
        settings = settings_for(
            redis_url,
            engine_url=engine.url,
            store_url=await stack.enter_async_context(real_store(redis_url, folder)),
            api_keys=api_keys,
            model=MODEL,
            sync_wait_s=0.2,
            storage_url=(folder / "objects").as_uri(),
        )
        gateway = await stack.enter_async_context(running_gateway(settings))
        gateway.app.state.changes = replace(gateway.app.state.changes, longest_s=STREAMS_END_AFTER_S)
        await stack.enter_async_context(working(gateway.work, settings))
        yield gateway
