"""Vector stores of tests: a gateway with a worker, on the real memory store."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from openai.types.vector_stores import VectorStoreFile

from gateway.settings import WorkerSettings
from gateway.worker import working
from memloop.wire.memory import Scope
from tests.fakes.job_engine import Body, EngineServer, Reply, engine_server
from tests.fakes.real_store import real_store
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, TWO_TENANTS
from tests.gateway.file_uploads import upload
from tests.gateway.rig import eventually, settings_for
from tests.gateway.running import Gateway, running_gateway

KEYS = "The spare key of the boat house hangs behind the red lifebuoy."
TEA = "Tea is served at five in the winter garden."


@dataclass(frozen=True)
class Searches:
    """A running gateway, and OpenAI's clients of two tenants."""

    gateway: Gateway
    engine: EngineServer
    settings: WorkerSettings
    sdk: AsyncOpenAI
    other: AsyncOpenAI

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """A worker in this process meanwhile."""
        async with working(self.gateway.work, self.settings):
            yield

    async def file(self, text: str, name: str = "a.txt") -> str:
        """The id of a new file."""
        return (await upload(self.gateway, text.encode(), name=name, key=ALICE_KEY))["id"]

    async def attached(self, store_id: str, file_id: str, **how: Any) -> VectorStoreFile:
        """The file once it is indexed, or could not be."""
        await self.sdk.vector_stores.files.create(store_id, file_id=file_id, **how)
        return await self.indexed(store_id, file_id)

    async def indexed(self, store_id: str, file_id: str) -> VectorStoreFile:
        """The file once it is indexed, or could not be."""

        async def over() -> bool:
            return (await self._file(store_id, file_id)).status != "in_progress"

        await eventually(over)
        return await self._file(store_id, file_id)

    async def _file(self, store_id: str, file_id: str) -> VectorStoreFile:
        return await self.sdk.vector_stores.files.retrieve(file_id, vector_store_id=store_id)

    async def store_of(self, *texts: str, **how: Any) -> tuple[str, list[str]]:
        """A vector store of these texts, indexed, and the ids of its files."""
        made = await self.sdk.vector_stores.create(name="notes")
        files = [await self.file(text, f"{number}.txt") for number, text in enumerate(texts)]
        for file_id in files:
            assert (await self.attached(made.id, file_id, **how)).status == "completed"
        return made.id, files

    async def chunks(self, tenant: str = "files:a") -> int:
        """The number of vector stores and files of which the memory store holds texts."""
        entities = await self.gateway.memory.store.entities(Scope(tenant=tenant))
        return len(entities.entities)


@asynccontextmanager
async def searches(
    redis_url: str, folder: Path, answer: Callable[[Body], Reply], **changes: Any
) -> AsyncGenerator[Searches]:
    """A gateway of two tenants; no worker."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(engine_server(answer))
        store = await stack.enter_async_context(real_store(redis_url, folder / "store"))
        settings = settings_for(
            redis_url,
            engine_url=engine.url,
            store_url=store,
            api_keys=TWO_TENANTS,
            storage_url=(folder / "objects").as_uri(),
            sweep_every_s=0.05,
            **changes,
        )
        gateway = await stack.enter_async_context(running_gateway(settings))
        clients = [
            await stack.enter_async_context(AsyncOpenAI(base_url=gateway.url + "/v1", api_key=key, max_retries=0))
            for key in (ALICE_KEY, BOB_KEY)
        ]
        yield Searches(gateway, engine, settings, *clients)
