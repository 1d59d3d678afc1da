"""Re-embedding with another model, and the flush after which what was erased is in no file."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue
from qdrant_client import AsyncQdrantClient

from memloop.wire.errors import DependencyError
from memloop.wire.memory import Buffer, Source
from memloop_service import new_registry
from memloop_state.connecting import connect
from memory_store.embedding.embedder import BatchingEmbedder
from memory_store.main import Adapters, build
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from memory_store.vectors.filters import AllOf
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.qdrant_edge import EdgeCollections, QdrantEdge
from memory_store.vectors.qdrant_server import QdrantServer
from memory_store.vectors.schema import CollectionSpec, EmbeddingMismatch
from tests.fakes.embedder import HashingEncoder
from tests.fakes.processes import PATIENCE_S
from tests.fakes.redis_server import RedisServer
from tests.memory_store.api import StoreApi, day
from tests.memory_store.conftest import MODEL

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

SECRET = "zanzibar-4711-quokka"
_WIDE = 96


class FailingEncoder(HashingEncoder):
    """Encodes the probe and two batches, then fails until ``still`` is set."""

    still = False

    def encode(self, texts: Sequence[str]) -> Sequence[tuple[float, ...]]:
        if len(self.batches) > 2 and not self.still:
            raise RuntimeError("killed")
        return super().encode(texts)


class SlowlyClosed(BatchingEmbedder):
    """Takes its time to let its encoder go."""

    async def close(self) -> None:
        await asyncio.sleep(0.1)
        await super().close()


@asynccontextmanager
async def store_on(
    vectors: LiveCollection,
    settings: Settings,
    *,
    other: HashingEncoder | None = None,
    made: type[BatchingEmbedder] = BatchingEmbedder,
) -> AsyncGenerator[StoreApi]:
    """A store whose other models are all ``other``, each in an embedder ``made`` for it."""
    registry = new_registry()
    metrics = Metrics(registry)
    first = HashingEncoder(dimension=64 if settings.embedding_model == MODEL else _WIDE)

    def embedder_for(model: str) -> BatchingEmbedder:
        del model
        return made(lambda: other or HashingEncoder(dimension=_WIDE), metrics=metrics)

    adapters = Adapters(
        vectors,
        BatchingEmbedder(lambda: first, metrics=metrics),
        connect(settings.redis_url),
        embedder_for,
    )
    app = build(settings, adapters, registry, metrics)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://localhost") as http,
    ):
        http.headers["content-type"] = "application/json"
        yield StoreApi(http)


async def reembedded(store: StoreApi, model: str = "wide") -> dict[str, JsonValue]:
    """The job, once it is over."""
    began = await store.http.post("/v1/admin/reembed", json={"model": model})
    assert began.status_code == 202, began.text
    async with asyncio.timeout(PATIENCE_S):
        while (job := await newest_job(store))["status"] == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return job


async def newest_job(store: StoreApi) -> dict[str, JsonValue]:
    """The copy that began last."""
    answer = await store.http.get("/v1/admin/collections")
    assert answer.status_code == 200, answer.text
    return answer.json()["job"]


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
        assert (await store.http.get("/v1/admin/collections")).json()["in_service"] == "memloop_hashing_64"
        await store.patch(items[0].id, {"memory": "changed since"})
        await store.delete(items[1].id)
        done_before = len(encoder.batches)
        encoder.still = True

        done = await reembedded(store)

        assert done["status"] == "completed"
        texts = [item.memory for item in (await store.page(limit=500)).items]
        assert sorted(texts) == sorted(["changed since", *(f"value {number}" for number in range(2, 200))])
        assert sum(encoder.batches[done_before:]) < 200


async def test_a_run_reported_as_failed_is_counted_once_and_can_restart_immediately(
    vectors: LiveCollection, settings: Settings
) -> None:
    encoder = FailingEncoder(dimension=_WIDE)
    async with store_on(vectors, settings, other=encoder, made=SlowlyClosed) as store:
        for number in range(200):
            await store.add(f"Key {number}", f"value {number}")
        assert (await reembedded(store))["status"] == "failed"
        encoder.still = True

        assert (await reembedded(store))["status"] == "completed"

        told = (await store.http.get("/metrics")).text
        assert 'memory_store_copies_total{kind="reembed",status="failed"} 1.0' in told
        assert 'memory_store_copies_total{kind="reembed",status="completed"} 1.0' in told


class AskedAtTheSwap(EdgeCollections):
    """Calls ``asked`` when another collection is put in service, before the store that copied works on it."""

    asked: Callable[[], Awaitable[None]] | None = None

    async def serve(self, name: str) -> None:
        await super().serve(name)
        if self.asked:
            await self.asked()


@pytest.mark.parametrize("polled", [False, True], ids=["the job turns first", "a request turns first"])
async def test_a_failure_to_close_the_collection_before_fails_no_request_and_no_job(
    edge_folder: Path, settings: Settings, caplog: pytest.LogCaptureFixture, *, polled: bool
) -> None:
    full = False

    @contextmanager
    def flushing() -> Generator[None]:
        nonlocal full
        if full:
            full = False
            raise DependencyError("no space left")
        yield

    collections = AskedAtTheSwap(edge_folder, flush_s=60, flushing=flushing)
    async with store_on(LiveCollection(collections, site="edge"), settings) as store:

        async def poll() -> None:
            await newest_job(store)

        await store.add("City", "Rome")
        collections.asked = poll if polled else None
        full = True

        job = await reembedded(store)

        assert (job["status"], job["error"]) == ("completed", None)
        assert "no space left" in caplog.text
        assert (await store.http.get("/v1/admin/collections")).json()["in_service"] == f"memloop_wide_{_WIDE}"
        async with asyncio.timeout(PATIENCE_S):
            await store.add("Pet", "a cat")
            assert sorted(await store.found("what")) == ["Rome", "a cat"]


async def test_of_two_runs_begun_together_one_is_refused(vectors: LiveCollection, settings: Settings) -> None:
    async with store_on(vectors, settings) as store:
        await store.add("City", "Rome")
        begun = [store.http.post("/v1/admin/reembed", json={"model": "wide"}) for _ in range(2)]

        assert sorted(answer.status_code for answer in await asyncio.gather(*begun)) == [202, 409]


async def test_what_was_erased_after_a_failed_run_does_not_come_back(
    vectors: LiveCollection, settings: Settings
) -> None:
    encoder = FailingEncoder(dimension=_WIDE)
    async with store_on(vectors, settings, other=encoder) as store:
        for number in range(200):
            await store.add(f"Key {number}", f"value {number}")
        await reembedded(store)
        await store.erase()
        await store.add("Key 1", "value 1")
        encoder.still = True

        assert (await reembedded(store))["status"] == "completed"
        assert [item.memory for item in (await store.page(limit=500, latest_only="false")).items] == ["value 1"]


async def test_after_a_new_start_the_old_model_is_refused_with_the_way_out(
    edge_folder: Path, settings: Settings
) -> None:
    async with store_on(QdrantEdge(edge_folder, flush_s=60), settings) as store:
        await store.add("City", "Rome")
        await reembedded(store)

    with pytest.raises(EmbeddingMismatch, match=r"memories are in memloop_wide_96.*MEMLOOP_EMBEDDING_MODEL"):
        await QdrantEdge(edge_folder, flush_s=60).open(CollectionSpec(MODEL, 64))
    new = settings.model_copy(update={"embedding_model": "wide"})
    async with store_on(QdrantEdge(edge_folder, flush_s=60), new) as store:
        assert await store.found("city") == ["Rome"]


async def test_the_old_collection_is_dropped_by_command_only_when_it_is_not_in_service(
    vectors: LiveCollection, settings: Settings
) -> None:
    async with store_on(vectors, settings) as store:
        await store.add("City", "Rome")
        await reembedded(store)

        names = ("memloop_wide_96", "memloop_hashing_64", "memloop_hashing_64", "..")
        dropped = [(await store.http.delete(f"/v1/admin/collections/{name}")).status_code for name in names]

        assert dropped[:3] == [409, 204, 404]
        assert dropped[3] in (404, 405)


async def test_the_model_in_service_cannot_be_its_own_successor(edge_folder: Path, settings: Settings) -> None:
    async with store_on(QdrantEdge(edge_folder, flush_s=60), settings) as store:
        answer = await store.http.post("/v1/admin/reembed", json={"model": MODEL})

    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "model_in_service")


async def test_after_a_flush_what_was_erased_is_in_no_file(edge_folder: Path, settings: Settings) -> None:
    redis = RedisServer.start(appendonly=True)
    mine = settings.model_copy(update={"redis_url": redis.url})
    try:
        async with store_on(QdrantEdge(edge_folder, flush_s=0.05), mine) as store:
            kept = (await store.add("City", "Rome", metadata={"a": 1})).item
            erased = store.of(user_id="bob")
            await erased.add("Secret", SECRET, metadata={"note": SECRET})
            await erased.add("turn", SECRET, kind="RawTurn")
            buffer = Buffer(namespace=erased.namespace, turns=(Source(role="user", content=SECRET),))
            await store.http.put("/v1/buffers", content=buffer.model_dump_json())
            assert {"edge", "redis"} <= places_of_secret(edge_folder, redis.folder)

            assert (await erased.erase()).vectors == 2
            answer = await store.http.post("/v1/admin/flush")

            assert answer.json() == {
                "collection": "memloop_hashing_64~2",
                "memories": 1,
                "dropped": ["memloop_hashing_64"],
                "files": ["append-only file"],
            }
            assert places_of_secret(edge_folder, redis.folder) == set()
            assert await store.item(kept.id) == kept
            assert await store.found("city") == ["Rome"]
            await store.add("City", "Oslo")
        async with store_on(QdrantEdge(edge_folder, flush_s=60), mine) as store:
            assert await store.found("city") == ["Oslo"]
    finally:
        redis.stop()


def places_of_secret(edge: Path, redis: Path) -> set[str]:
    """Where the bytes of the secret stand."""
    places = {"edge": edge, "redis": redis}
    return {name for name, folder in places.items() if any(map(_has_secret, folder.rglob("*")))}


def _has_secret(path: Path) -> bool:
    """Whether it is a file with the bytes; one that is replaced meanwhile has none any more."""
    with suppress(FileNotFoundError):
        return path.is_file() and SECRET.encode() in path.read_bytes()
    return False


async def test_a_flush_gives_old_memories_the_fields_that_an_upgrade_brought(
    vectors: LiveCollection, settings: Settings
) -> None:
    async with store_on(vectors, settings) as store:
        item = (await store.add("turn", "Anna: I moved to Rome", kind="RawTurn")).item
        [new] = await vectors.get([item.id], where=AllOf(()))
        old = {name: value for name, value in new.payload.items() if name not in {"place", "speaker"}}
        await vectors.upsert([replace(new, payload=old)])

        assert (await store.http.post("/v1/admin/flush")).status_code == 200

        [flushed] = await vectors.get([item.id], where=AllOf(()))
        assert flushed.payload == new.payload


async def test_flushes_follow_one_another(vectors: LiveCollection, settings: Settings) -> None:
    async with store_on(vectors, settings) as store:
        await store.add("City", "Rome")

        answers = await asyncio.gather(*(store.http.post("/v1/admin/flush") for _ in range(3)))

        assert [answer.status_code for answer in answers] == [200, 200, 200]
        assert await store.found("city") == ["Rome"]
        assert (await store.http.get("/v1/admin/collections")).json()["in_service"] == "memloop_hashing_64~4"
