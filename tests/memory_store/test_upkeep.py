"""Re-embedding with another model, and the flush after which what was erased is in no file."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue
from qdrant_client import AsyncQdrantClient

from memloop.service import new_registry
from memory_store.embedder import BatchingEmbedder
from memory_store.main import Adapters, build
from memory_store.metrics import Metrics
from memory_store.redis_link import connect
from memory_store.settings import Settings
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.qdrant_server import QdrantServer
from tests.fakes.embedder import HashingEncoder
from tests.memory_store.api import StoreApi, day
from tests.memory_store.conftest import MODEL

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

SECRET = "zanzibar-4711-quokka"
_WIDE = 96


class FailingEncoder(HashingEncoder):
    """Encodes a few batches, then the process is as good as dead."""

    def encode(self, texts: Sequence[str]) -> Sequence[tuple[float, ...]]:
        if len(self.batches) > 2:
            raise RuntimeError("killed")
        return super().encode(texts)


@asynccontextmanager
async def store_on(
    vectors: LiveCollection, settings: Settings, *, other: HashingEncoder | None = None
) -> AsyncGenerator[StoreApi]:
    """A store whose other models are all ``other``."""
    registry = new_registry()
    metrics = Metrics(registry)
    first = HashingEncoder(dimension=64 if settings.embedding_model == MODEL else _WIDE)

    def embedder_for(model: str) -> BatchingEmbedder:
        del model
        return BatchingEmbedder(lambda: other or HashingEncoder(dimension=_WIDE), metrics=metrics)

    adapters = Adapters(
        vectors, BatchingEmbedder(lambda: first, metrics=metrics), connect(settings.redis_url), embedder_for
    )
    app = build(settings, adapters, registry, metrics)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://store") as http,
    ):
        http.headers["content-type"] = "application/json"
        yield StoreApi(http)


async def reembedded(store: StoreApi, model: str = "wide") -> dict[str, JsonValue]:
    """The job, once it is over."""
    began = await store.http.post("/v1/admin/reembed", json={"model": model})
    assert began.status_code == 202, began.text
    async with asyncio.timeout(30):
        while (job := (await store.http.get("/v1/admin/collections")).json()["job"])["status"] == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return job


@pytest.fixture(params=["edge", "local"])
def vectors(request: pytest.FixtureRequest, edge_folder: Path) -> LiveCollection:
    if request.param == "edge":
        return QdrantEdge(edge_folder, flush_s=60)
    return QdrantServer(AsyncQdrantClient(":memory:"))


async def test_another_model_takes_over_without_losing_a_write(vectors: LiveCollection, settings: Settings) -> None:
    async with store_on(vectors, settings) as store:
        items = [(await store.add(f"Key {number}", f"value {number}", timestamp=day(1))).item for number in range(150)]
        await store.delete(items[3].id)
        before = await store.history(items[3].id)

        async def write_meanwhile() -> None:
            for number in range(40):
                await store.add(f"Key {number + 100}", f"newer {number}", timestamp=day(2))
                await store.add(f"New {number}", "new")

        job, _ = await asyncio.gather(reembedded(store), write_meanwhile())

        assert (job["status"], job["target"]) == ("completed", f"memloop_wide_{_WIDE}")
        listed = (await store.http.get("/v1/admin/collections")).json()
        assert (listed["in_service"], listed["kept"]) == (f"memloop_wide_{_WIDE}", ["memloop_hashing_64"])
        live = (await store.page(limit=500)).items
        assert len(live) == 149 + 40
        assert sorted(item.memory for item in live if item.memory.startswith("newer")) == sorted(
            f"newer {number}" for number in range(40)
        )
        assert await store.history(items[3].id) == before
        assert (await store.found("Key 7: value 7"))[0] == "value 7"


async def test_a_run_that_failed_goes_on_where_it_was(vectors: LiveCollection, settings: Settings) -> None:
    encoder = FailingEncoder(dimension=_WIDE)
    async with store_on(vectors, settings, other=encoder) as store:
        items = [(await store.add(f"Key {number}", f"value {number}")).item for number in range(200)]
        failed = await reembedded(store)
        assert failed["status"] == "failed"
        assert failed["error"] == "DependencyError: the embedding model failed: RuntimeError"
        assert (await store.http.get("/v1/admin/collections")).json()["in_service"] == "memloop_hashing_64~4"
