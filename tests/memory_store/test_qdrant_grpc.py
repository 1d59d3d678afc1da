"""Memories go over gRPC where its port is named: the real client, against a stand-in of Qdrant's own messages."""

from pathlib import Path

import pytest
from aiohttp import web
from grpc import StatusCode
from qdrant_client import AsyncQdrantClient

from memloop.wire.errors import DependencyError
from memloop_service import new_registry
from memory_store.main import adapters_of
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from memory_store.vectors.filters import AllOf
from memory_store.vectors.qdrant_server import ServerCollection
from memory_store.vectors.schema import CollectionSpec
from memory_store.vectors.server_layout import Layout
from tests.fakes.ports import free_port
from tests.fakes.qdrant_grpc import serving_points
from tests.fakes.qdrant_server import QdrantStandIn, failed
from tests.memory_store.test_qdrant_layout import every_read, of_user, point

_ALL = AllOf(())


async def _refusing() -> web.Response:
    return failed(500, "points are not asked for over REST")


async def test_a_store_with_a_grpc_port_reads_and_writes_memories_there(tmp_path: Path) -> None:
    server = QdrantStandIn(nodes=3, answers_points=_refusing)
    async with server.running() as url, serving_points(server.collections) as port:
        settings = Settings(qdrant_url=url, qdrant_grpc_port=port, data_dir=tmp_path)
        adapters = adapters_of(settings, Metrics(new_registry()))
        vectors = adapters.vectors
        await vectors.open(CollectionSpec("m", 4))
        await vectors.upsert([point(1, "a"), point(2, "b")])
        await every_read(vectors, of_user("a"))
        [back] = await vectors.get([point(1, "a").id], where=of_user("a"))
        await vectors.delete(where=of_user("b"))
        left = await vectors.count(where=_ALL)
        await vectors.close()
        await adapters.redis.aclose()

    assert back.payload == point(1, "a").payload
    assert left == 1


_FAILURES = [
    (StatusCode.INTERNAL, "Service internal error: 1 of 1 read operations failed", 503, "qdrant_no_live_copy"),
    (StatusCode.UNAVAILABLE, "Service unavailable: starting", 503, "qdrant_unavailable"),
    (StatusCode.DEADLINE_EXCEEDED, "Timeout error: Operation timed out", 504, "qdrant_timeout"),
    (StatusCode.UNAUTHENTICATED, "Invalid API key or JWT", 502, "qdrant_key_refused"),
    (StatusCode.NOT_FOUND, "Not found: Collection `m` doesn't exist!", 502, "qdrant_no_collection"),
    (StatusCode.INVALID_ARGUMENT, "Wrong input: secret", 502, "qdrant_refused"),
    (StatusCode.DATA_LOSS, "disk", 502, "qdrant_failed"),
]


@pytest.mark.parametrize(("status", "error", "ours", "code"), _FAILURES, ids=lambda value: str(value)[:30])
async def test_each_status_of_grpc_is_an_error_of_ours(status: StatusCode, error: str, ours: int, code: str) -> None:
    async with serving_points({}, (status, error)) as port:
        refused = await _failure(port)

    assert (refused.http_status, refused.code) == (ours, code)
    assert error not in refused.message


async def test_a_grpc_port_without_a_server_is_unreachable() -> None:
    refused = await _failure(free_port())

    assert (refused.http_status, refused.code) == (503, "qdrant_unreachable")


async def _failure(port: int) -> DependencyError:
    client = AsyncQdrantClient(
        url="http://127.0.0.1", grpc_port=port, prefer_grpc=True, timeout=60, check_compatibility=False
    )
    with pytest.raises(DependencyError) as raised:
        await ServerCollection(client, "m", Layout()).count(where=_ALL)
    await client.close()
    return raised.value
