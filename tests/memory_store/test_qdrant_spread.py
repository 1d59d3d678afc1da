"""How a collection is spread over Qdrant's nodes, and that its snapshots are fetched by the real client."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr
from qdrant_client import AsyncQdrantClient

from memory_store.backup.creating import Stack, qdrant_snapshots
from memory_store.vectors.qdrant_server import QdrantServer, Spread
from memory_store.vectors.schema import CollectionSpec
from tests.fakes.web_server import serving

KEY = "key-of-qdrant"


class Recording(AsyncQdrantClient):
    """A local client that remembers how collections and indexes were made."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.made: dict[str, Any] = {}
        self.tenants: list[str] = []

    async def create_collection(self, collection_name: str, *args: Any, **kwargs: Any) -> bool:
        self.made = kwargs
        return await super().create_collection(collection_name, *args, **kwargs)

    async def create_payload_index(self, collection_name: str, field_name: str, *args: Any, **kwargs: Any) -> Any:
        if getattr(kwargs["field_schema"], "is_tenant", False):
            self.tenants.append(field_name)


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect")
async def test_a_collection_is_made_with_shards_replicas_and_a_tenant_index() -> None:
    client = Recording()
    store = QdrantServer(client, Spread(shards=6, replicas=2, write_consistency=2))
    await store.open(CollectionSpec("m", 4))
    made = {name: client.made[name] for name in ("shard_number", "replication_factor", "write_consistency_factor")}
    await store.close()
    assert made == {"shard_number": 6, "replication_factor": 2, "write_consistency_factor": 2}
    assert client.tenants == ["tenant"]


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")
async def test_a_snapshot_of_each_collection_of_ours_is_fetched_and_deleted(tmp_path: Path) -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(f"{request.method} {request.path}")
        assert request.headers["api-key"] == KEY
        if request.method == "GET" and request.path == "/collections":
            return _told({"collections": [{"name": "memloop_m_4"}, {"name": "of_somebody_else"}]})
        if request.method == "POST":
            return _told({"name": "s1", "size": 5, "creation_time": "2026-11-21T00:00:00"})
        return _told(True) if request.method == "DELETE" else web.Response(body=b"bytes")

    async with serving([web.route("*", "/{path:.*}", answer)]) as url:
        stack = Stack(qdrant_url=url, qdrant_api_key=SecretStr(KEY))
        (part,) = await qdrant_snapshots(tmp_path, stack)
    place = "/collections/memloop_m_4/snapshots"
    assert seen == ["GET /collections", f"POST {place}", f"GET {place}/s1", f"DELETE {place}/s1"]
    assert (tmp_path / part.name).read_bytes() == b"bytes"


def _told(result: object) -> web.Response:
    return web.json_response({"result": result, "status": "ok", "time": 0.0})
