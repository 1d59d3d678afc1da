"""The snapshots of a Qdrant server's collections are fetched by the real client."""

from pathlib import Path

import pytest
from aiohttp import web
from pydantic import SecretStr

from memory_store.backup.creating import Stack, qdrant_snapshots
from tests.fakes.web_server import serving

KEY = "key-of-qdrant"


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
