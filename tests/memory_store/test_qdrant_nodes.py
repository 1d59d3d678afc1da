"""Several nodes in ``QDRANT_URL``: requests go on at the next node when one fails."""

import asyncio
import contextlib
from pathlib import Path

import httpx
import pytest
from aiohttp import web
from pydantic import ValidationError

from memloop.wire.errors import Unavailable
from memloop_service import new_registry
from memory_store.main import adapters_of
from memory_store.metrics import Metrics
from memory_store.settings import Settings
from memory_store.vectors.schema import CollectionSpec
from memory_store.vectors.server_at import AnyNode
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S
from tests.fakes.qdrant_server import QdrantStandIn
from tests.fakes.web_server import serving
from tests.memory_store.test_qdrant_layout import of_user, point

_LATE_S = 0.05


async def test_a_store_goes_on_at_the_next_node_until_none_is_left(tmp_path: Path) -> None:
    server, nowhere = QdrantStandIn(nodes=3), f"http://127.0.0.1:{free_port()}"
    async with server.running() as second:
        async with server.running() as first:
            settings = Settings(qdrant_url=f"{nowhere}, {first},{second}", data_dir=tmp_path)
            adapters = adapters_of(settings, Metrics(new_registry()))
            vectors = adapters.vectors
            await vectors.open(CollectionSpec("m", 4))
            await vectors.upsert([point(1, "a")])
        with contextlib.suppress(Unavailable):  # its connection may close while the request is on its way
            await vectors.ping()
        found = await vectors.count(where=of_user("a"))
    with contextlib.suppress(Unavailable):
        await vectors.ping()
    with pytest.raises(Unavailable):
        await vectors.ping()
    await vectors.close()
    await adapters.redis.aclose()

    assert found == 1


async def test_a_request_that_was_sent_is_not_repeated_and_the_next_one_goes_elsewhere() -> None:
    sent: list[str] = []

    async def never(request: web.Request) -> web.Response:
        sent.append(request.path)
        await asyncio.Event().wait()
        raise AssertionError

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=f"{request.host} {await request.text()}")

    async with (
        serving([web.post("/x", never)]) as hanging,
        serving([web.post("/x", answer)]) as answering,
        httpx.AsyncClient(transport=AnyNode([hanging, answering]), timeout=PATIENCE_S) as client,
    ):
        late = httpx.Timeout(PATIENCE_S, read=_LATE_S)
        with pytest.raises(httpx.ReadTimeout):
            await client.post(f"{hanging}/x", content=b"first", timeout=late)
        second = await client.post(f"{hanging}/x", content=b"second")

    assert second.text == f"{httpx.URL(answering).netloc.decode()} second"
    assert len(sent) <= 1


def test_a_grpc_port_needs_one_address() -> None:
    with pytest.raises(ValidationError, match="QDRANT_GRPC_PORT needs a QDRANT_URL with one address"):
        Settings(qdrant_url="http://a:6333,http://b:6333", qdrant_grpc_port=6334)
