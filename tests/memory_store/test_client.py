"""The store's own client against the store over a real socket."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

import pytest
import uvicorn

from memloop.wire.errors import Conflict, NotFound, PreconditionFailed, Unprocessable
from memloop.wire.memory import Buffer, ItemPatch, MemoryDraft, Source, StoreAdd, StoreSearch
from memloop_clients.store import NamespaceIndex, StoreClient
from memory_store.settings import Settings
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.fakes.ports import free_port
from tests.memory_store.api import ALICE, day
from tests.memory_store.conftest import app_over


@contextlib.asynccontextmanager
async def listening(settings: Settings) -> AsyncGenerator[str]:
    port = free_port()
    app = app_over(QdrantEdge(settings.data_dir, flush_s=60), settings)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn tells, it does not call
        await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    await serving


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[StoreClient]:
    guarded = Settings.model_validate({**settings.model_dump(), "store_key": "secret"})
    async with listening(guarded) as url, StoreClient(url, key="secret") as client:
        yield client


def add(value: str, **fields: object) -> StoreAdd:
    draft = MemoryDraft(key="City", value=value)
    return StoreAdd.model_validate({"namespace": ALICE, "drafts": (draft,), **fields})


async def test_the_client_writes_reads_edits_and_deletes(client: StoreClient) -> None:
    await client.check()
    [written] = (await client.add(add("Rome", timestamp=day(1)))).results
    item_id = written.item.id

    edited = await client.patch(item_id, ItemPatch(memory="Oslo"), tenant="t1", if_version=1)
    assert await client.item(item_id, tenant="t1") == edited
    assert len((await client.history(item_id, tenant="t1")).versions) == 2
    assert (await client.items(ALICE)).items == (edited,)
    hits = (await client.search(StoreSearch(namespace=ALICE, query="city"))).results
    assert [hit.item for hit in hits] == [edited]
    await client.delete(item_id, tenant="t1")
    assert (await client.items(ALICE)).items == ()


async def test_the_loops_index_searches_one_namespace(client: StoreClient) -> None:
    await client.add(add("lives in Rome", timestamp=day(1)))

    [recalled] = await NamespaceIndex(client, ALICE).search("city", top_k=3)

    assert (recalled.text, recalled.valid_from) == ("lives in Rome", day(1))


async def test_the_client_keeps_lists_and_clears_buffers(client: StoreClient) -> None:
    buffer = Buffer(namespace=ALICE.model_copy(update={"run_id": "r"}), turns=(Source(role="user", content="hm"),))

    stored = await client.put_buffer(buffer)

    assert (await client.buffers("t1", user_id="alice")).buffers == (stored,)
    await client.clear_buffer(ALICE)
    assert (await client.buffers("t1")).buffers == (stored,)
    assert (await client.erase(ALICE)).buffers == 1


async def test_errors_arrive_as_they_were_raised(client: StoreClient) -> None:
    [written] = (await client.add(add("Rome", fencing_token=2))).results

    with pytest.raises(Conflict) as stale:
        await client.add(add("Oslo", fencing_token=1))
    with pytest.raises(NotFound):
        await client.item(written.item.id, tenant="t2")
    with pytest.raises(PreconditionFailed):
        await client.patch(written.item.id, ItemPatch(memory="x"), tenant="t1", if_version=9)
    with pytest.raises(Unprocessable) as filters:
        await client.search(StoreSearch(namespace=ALICE, query="q", filters={"a": {}}))

    assert stale.value.code == "stale_fencing_token"
    assert filters.value.param == "filters"


async def test_memories_survive_a_restart_of_the_whole_process(settings: Settings) -> None:
    async with listening(settings) as url, StoreClient(url) as client:
        first = await client.add(add("Rome", event_id="e1"))

    async with listening(settings) as url, StoreClient(url) as client:
        assert await client.add(add("Rome", event_id="e1")) == first
        assert len((await client.items(ALICE)).items) == 1
