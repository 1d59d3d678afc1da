"""The store's own client against the store over a real socket."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import uvicorn

from memloop.wire.errors import Conflict, NotFound, PreconditionFailed, Unprocessable
from memloop.wire.memory import ItemPatch, MemoryDraft, StoreAdd, StoreSearch
from memloop_clients.store import StoreClient
from memory_store.settings import Settings
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.fakes.ports import free_port
from tests.memory_store.api import ALICE, day
from tests.memory_store.conftest import app_over


@pytest.fixture
async def client(settings: Settings) -> AsyncIterator[StoreClient]:
    guarded = Settings.model_validate({**settings.model_dump(), "store_key": "secret"})
    port = free_port()
    app = app_over(QdrantEdge(settings.data_dir, flush_s=60), guarded)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn tells, it does not call
        await asyncio.sleep(0.01)
    async with StoreClient(f"http://127.0.0.1:{port}", key="secret") as client:
        yield client
    server.should_exit = True
    await serving


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
