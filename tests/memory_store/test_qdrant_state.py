"""The store shows which Qdrant it works on, and warns when there are fewer copies than were asked for."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest
from qdrant_client import AsyncQdrantClient

from memory_store.settings import Settings
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.qdrant_server import QdrantServer
from memory_store.vectors.server_setup import ShardConfig
from tests.fakes.qdrant_cluster import QdrantCluster
from tests.fakes.qdrant_server import QdrantStandIn
from tests.memory_store.api import ALICE, StoreApi
from tests.memory_store.conftest import app_over, serving

_TWO_COPIES = ShardConfig(replicas=2, write_consistency=1)


@asynccontextmanager
async def _store(url: str, settings: Settings, sharding: ShardConfig) -> AsyncGenerator[httpx.AsyncClient]:
    client = AsyncQdrantClient(url=url, timeout=60, check_compatibility=False)
    async with serving(app_over(QdrantServer(client, sharding), settings)) as http:
        yield http


async def test_a_cluster_is_shown_with_its_version_nodes_shards_and_copies(settings: Settings) -> None:
    server = QdrantCluster(nodes=3)
    async with server.running_nodes() as urls, _store(urls[0], settings, _TWO_COPIES) as http:
        shown = (await http.get("/v1/admin/vectors")).json()
        ready = (await http.get("/readyz")).json()

    assert shown == {
        "version": "1.20.0",
        "distributed": True,
        "nodes": 3,
        "shards": 6,
        "copies": 2,
        "copies_asked": 2,
        "write_consistency": 1,
        "warning": None,
    }
    assert "warnings" not in ready


async def test_a_copy_that_is_lost_is_a_warning_of_a_store_that_is_ready(settings: Settings) -> None:
    server = QdrantCluster(nodes=3)
    async with server.running_nodes() as urls, _store(urls[0], settings, _TWO_COPIES) as http:
        server.kill(2)
        for number in range(12):
            await StoreApi(http, ALICE.model_copy(update={"user_id": f"user {number}"})).add("Harbour", "It is blue.")
        ready = await http.get("/readyz")

    assert ready.status_code == 200
    assert ready.json()["warnings"]["vectors"] == (
        "a shard of the vectors has 1 of the 2 copies of MEMLOOP_QDRANT_REPLICAS: bring nodes back; "
        "a collection that was made with fewer gets them by POST /v1/admin/flush"
    )


async def test_copies_asked_of_a_server_that_is_not_distributed_are_a_warning_at_start(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with QdrantStandIn().running() as url:
        with caplog.at_level(logging.INFO):
            async with _store(url, settings, _TWO_COPIES) as http:
                shown = (await http.get("/v1/admin/vectors")).json()

    assert (shown["distributed"], shown["nodes"], shown["shards"], shown["copies"]) == (False, 1, 1, 1)
    assert shown["warning"].endswith("the Qdrant server is not in distributed mode")
    assert "version='1.20.0'" in caplog.text
    assert shown["warning"] in [record.message for record in caplog.records if record.levelno == logging.WARNING]


async def test_more_copies_than_nodes_are_a_warning(settings: Settings) -> None:
    server = QdrantCluster(nodes=2)
    async with server.running_nodes() as urls, _store(urls[0], settings, ShardConfig(replicas=3)) as http:
        shown = (await http.get("/v1/admin/vectors")).json()

    assert shown["warning"].endswith("2 of the 3 copies of MEMLOOP_QDRANT_REPLICAS: the cluster has 2 nodes")


async def test_embedded_vectors_have_no_server(settings: Settings) -> None:
    async with serving(app_over(QdrantEdge(settings.data_dir, flush_s=60), settings)) as http:
        shown = (await http.get("/v1/admin/vectors")).json()

    assert set(shown.values()) == {None}
