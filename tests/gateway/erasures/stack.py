"""A gateway with its worker's slices, the real memory store, Redis with its log, files in a folder."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from gateway.settings import WorkerSettings
from tests.fakes.job_engine import Body, EngineServer, Reply, engine_server
from tests.fakes.real_store import real_store
from tests.fakes.redis_server import RedisServer
from tests.gateway.rig import settings_for
from tests.gateway.running import Gateway, running_gateway


@dataclass(frozen=True)
class Stack:
    """What the tests of erasures touch."""

    gateway: Gateway
    settings: WorkerSettings
    engine: EngineServer
    store: str
    folders: tuple[Path, ...]

    async def erase(self, **ids: str) -> dict[str, int]:
        """Erase over HTTP; return the counts."""
        query = "&".join(f"{name}={value}" for name, value in ids.items())
        async with self.gateway.http.delete(f"{self.gateway.url}/v1/memory?{query}") as erased:
            body = await erased.json()
            assert erased.status == 200, body
            return body

    async def flush(self) -> None:
        """Rewrite the files of the store and of Redis."""
        async with aiohttp.ClientSession() as http, http.post(f"{self.store}/v1/admin/flush") as flushed:
            assert flushed.status == 200, await flushed.text()


@asynccontextmanager
async def whole_stack(folder: Path, answer: Callable[[Body], Reply], **changes: object) -> AsyncGenerator[Stack]:
    """A running, empty stack with traces on; the worker is the caller's to run."""
    redis = RedisServer.start(appendonly=True, options=["--appendfsync", "no"])
    try:
        async with AsyncExitStack() as stack:
            engine = await stack.enter_async_context(engine_server(answer))
            store = await stack.enter_async_context(real_store(redis.url, folder / "store"))
            settings = settings_for(
                redis.url,
                engine_url=engine.url,
                store_url=store,
                storage_url=(folder / "storage").as_uri(),
                stop_wait_s=0.0,
                **changes,
            )
            gateway = await stack.enter_async_context(running_gateway(settings))
            await gateway.memory.traces.records.switch("local", on=True)
            folders = (folder / "store", folder / "storage", redis.folder)
            yield Stack(gateway, settings, engine, store, folders)
    finally:
        redis.stop()
