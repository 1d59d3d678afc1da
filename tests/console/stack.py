"""The console on everything real but the engine: gateway with the built files, worker, Redis, memory store."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.console.routes import PACKAGED
from gateway.settings import WorkerSettings
from gateway.worker import working
from tests.console.scripted import answer as scripted
from tests.fakes.job_engine import Body, EngineServer, Reply, engine_server
from tests.fakes.processes import PATIENCE_S
from tests.fakes.real_store import real_store
from tests.gateway.rig import settings_for
from tests.gateway.running import Gateway, running_gateway

BUILT: Final = PACKAGED


@dataclass(frozen=True)
class Stack:
    """The running gateway and what a test may break behind it."""

    gateway: Gateway
    engine: EngineServer
    store: AsyncExitStack
    """Closing it ends the store."""
    settings: WorkerSettings
    worker: AsyncExitStack
    """Closing it ends the worker."""

    async def tell(self, text: str, *, user: str = "ann", **fields: object) -> str:
        """Add a turn of the user and wait until the writer has decided. Returns the event's id."""
        body = {"messages": [{"role": "user", "content": text}], "user_id": user, **fields}
        reply = await self.gateway.post("/v1/memory/add", body)
        assert reply.status == 202, reply.raw
        event_id = str(reply.json["event_id"])
        await self.gateway.memory.queue.events.wait("local", event_id, timeout_s=PATIENCE_S)
        return event_id

    async def another_worker(self) -> None:
        """Start a worker in place of the one that was closed."""
        await self.worker.enter_async_context(working(self.gateway.work, self.settings))


@asynccontextmanager
async def console_stack(
    redis_url: str, folder: Path, answer: Callable[[Body], Reply] = scripted, **changes: object
) -> AsyncGenerator[Stack]:
    """All of it, running; ``changes`` are settings."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(engine_server(answer))
        store = await stack.enter_async_context(AsyncExitStack())
        url = await store.enter_async_context(real_store(redis_url, folder))
        given = {"engine_url": engine.url, "store_url": url, "storage_url": (folder / "files").as_uri(), **changes}
        settings = settings_for(redis_url, **given)
        gateway = await stack.enter_async_context(running_gateway(settings))
        worker = await stack.enter_async_context(AsyncExitStack())
        found = Stack(gateway, engine, store, settings, worker)
        await found.another_worker()
        yield found
