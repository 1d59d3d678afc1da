"""Starting on a Qdrant server: several stores at once, a server that comes later, an old one. With the real client."""

import asyncio
import logging
import random

import httpx
import pytest
from qdrant_client import AsyncQdrantClient

from memloop.wire.errors import Unavailable
from memory_store.settings import Settings
from memory_store.vectors.qdrant_server import QdrantServer
from memory_store.vectors.schema import PAYLOAD_INDEXES, CollectionSpec, ServerTooOld
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S
from tests.fakes.qdrant_server import QdrantStandIn
from tests.memory_store.conftest import app_over, serving

_STORES = 4
_SPEC = CollectionSpec("m", 4)
_SEARCH = {"namespace": {"tenant": "t", "user_id": "u"}, "query": "harbour"}


def _vectors(url: str) -> QdrantServer:
    return QdrantServer(AsyncQdrantClient(url=url, timeout=60, check_compatibility=False))


@pytest.mark.parametrize("nodes", [0, 3])
async def test_stores_that_start_together_on_an_empty_server_all_open(nodes: int) -> None:
    server = QdrantStandIn(nodes=nodes, asked_together=_STORES)
    async with server.running() as url:
        stores = [_vectors(url) for _ in range(_STORES)]
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as starting:
            for store in stores:
                starting.create_task(store.open(_SPEC))
        names = {store.name for store in stores}
        for store in stores:
            await store.close()

    assert names == {_SPEC.name}
    assert list(server.collections) == [_SPEC.name]
    assert server.aliases == {"memloop": _SPEC.name}
    assert set(server.indexes[_SPEC.name]) == {"owner", *(field for field, _ in PAYLOAD_INDEXES)}
    assert len(server.collections[_SPEC.name].shards) == max(1, 2 * nodes)
    assert server.refusals == (_STORES - 1) * (2 + 2 * nodes + len(server.indexes[_SPEC.name]))


@pytest.mark.parametrize("seed", range(12))
async def test_stores_that_start_together_repeat_the_steps_at_which_a_cluster_stumbles(seed: int) -> None:
    server = QdrantStandIn(nodes=3, stumbles=random.Random(seed))
    async with server.running() as url:
        stores = [_vectors(url) for _ in range(_STORES)]
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as starting:
            for store in stores:
                starting.create_task(store.open(_SPEC))
        names = {store.name for store in stores}
        for store in stores:
            await store.close()

    assert names == {_SPEC.name} == {*server.collections}
    assert server.aliases == {"memloop": _SPEC.name}
    assert set(server.indexes[_SPEC.name]) == {"owner", *(field for field, _ in PAYLOAD_INDEXES)}
    assert set(server.collections[_SPEC.name].shards) == {f"users-{number}" for number in range(6)}
    assert server.stumbled.total() > 10


async def test_another_collection_put_in_service_meanwhile_is_not_replaced() -> None:
    server = QdrantStandIn()
    async with server.running() as url:
        store = _vectors(url)
        server.alias_of_another = "memloop_other_4"
        with pytest.raises(Unavailable) as raised:
            await store.open(_SPEC)
        await store.close()

    assert raised.value.code == "qdrant_alias_taken"
    assert server.aliases == {"memloop": "memloop_other_4"}


async def test_a_store_waits_for_a_server_that_is_not_there_yet(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    app = app_over(_vectors(f"http://127.0.0.1:{port}"), settings)
    with caplog.at_level(logging.INFO):
        async with serving(app) as http:
            before = await http.get("/readyz")
            refused = await http.post("/v1/items/search", json=_SEARCH)
            async with QdrantStandIn().running(port):
                await _until_ready(http)

    assert (before.status_code, before.json()["dependencies"]["vectors"]) == (503, "The vectors are not open.")
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "vectors_not_open")
    waits = [record for record in caplog.records if record.name.startswith("memory_store.vectors.")]
    assert [record.levelname for record in waits] == ["WARNING", "INFO"]
    assert "Qdrant cannot be reached." in waits[0].getMessage()


@pytest.mark.parametrize("version", ["1.19.3", "0.11.7", "1.9.0-dev", "custom", ""])
async def test_an_older_server_is_refused_with_both_versions_and_the_way_out(version: str) -> None:
    server = QdrantStandIn(version=version)
    async with server.running() as url:
        store = _vectors(url)
        with pytest.raises(
            ServerTooOld, match=rf"version {version or 'unknown'},.* 1\.20 or newer.*MEMLOOP_QDRANT_URL"
        ):
            await store.open(_SPEC)
        await store.close()

    assert server.collections == {}


@pytest.mark.parametrize("version", ["1.20.0", "1.20.0-dev", "1.21.4", "2.0.0", "v1.20.1"])
async def test_a_newer_server_is_opened(version: str) -> None:
    server = QdrantStandIn(version=version)
    async with server.running() as url:
        store = _vectors(url)
        await store.open(_SPEC)
        await store.close()

    assert list(server.collections) == [_SPEC.name]


async def test_a_server_that_comes_later_and_is_too_old_is_named_once_in_the_log(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    port, server = free_port(), QdrantStandIn(version="1.19.3")
    app = app_over(_vectors(f"http://127.0.0.1:{port}"), settings)
    async with serving(app) as http, server.running(port):
        async with asyncio.timeout(PATIENCE_S):
            while server.versions_asked < 3:  # noqa: ASYNC110 - the stand-in counts over HTTP
                await asyncio.sleep(0.05)
        ready = await http.get("/readyz")

    refusals = [record for record in caplog.records if "1.19.3" in record.getMessage()]
    assert ready.status_code == 503
    assert [record.levelname for record in refusals] == ["ERROR"]


async def _until_ready(http: httpx.AsyncClient) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await http.get("/readyz")).status_code != 200:  # noqa: ASYNC110 - readiness is what an operator polls
            await asyncio.sleep(0.05)
