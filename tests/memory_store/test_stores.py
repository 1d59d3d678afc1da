"""Several stores over one Qdrant server and one Redis, while another collection takes over."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import httpx
import pytest
from qdrant_client import AsyncQdrantClient

from memory_store.vectors.qdrant_server import QdrantServer, ServerCollection
from memory_store.vectors.server_layout import Layout
from tests.fakes.qdrant_points import QdrantWithPoints
from tests.memory_store.conftest import serving
from tests.memory_store.many_stores import Writers, flush, reembed, stored
from tests.memory_store.qdrant.stores import store_app

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

_STORES = 3


def qdrant(url: str) -> AsyncQdrantClient:
    return AsyncQdrantClient(url=url, timeout=60, check_compatibility=False)


@dataclass
class Fleet:
    """Stores over one Qdrant server."""

    server: QdrantWithPoints
    url: str
    stores: list[httpx.AsyncClient]

    async def in_service(self) -> ServerCollection:
        """The collection that the alias names."""
        return ServerCollection(qdrant(self.url), self.server.aliases["memloop"], Layout())


@pytest.fixture
async def fleet(redis_url: str) -> AsyncIterator[Fleet]:
    server = QdrantWithPoints()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(server.running())
        apps = [store_app(QdrantServer(qdrant(url)), redis_url) for _ in range(_STORES)]
        stores = [await stack.enter_async_context(serving(app)) for app in apps]
        yield Fleet(server, url, stores)


async def test_what_any_store_acknowledges_during_a_flush_and_a_reembedding_is_in_service_afterwards(
    fleet: Fleet,
) -> None:
    writers = Writers(lambda: fleet.stores)
    async with writers.writing(4) as books:
        await writers.wait_for(20)
        await flush(lambda: fleet.stores)
        await writers.wait_for(10)
        await reembed(lambda: fleet.stores, "hashing-96")
        await writers.wait_for(10)

    kept = await stored(await fleet.in_service())
    assert set(books.acknowledged) - kept.keys() == set()
    assert kept.most_common(1)[0][1] == 1
    assert fleet.server.aliases["memloop"] == "memloop_hashing-96_96"
    for store in fleet.stores:
        assert (await store.get("/readyz")).status_code == 200


async def test_a_store_is_not_ready_while_its_collection_is_not_there(fleet: Fleet) -> None:
    name = fleet.server.aliases["memloop"]
    made = fleet.server.collections.pop(name)
    missing = await fleet.stores[0].get("/readyz")
    fleet.server.collections[name] = made

    assert missing.status_code == 503
    assert missing.json()["dependencies"]["vectors"] == f"The collection {name} is not there."
    assert (await fleet.stores[0].get("/readyz")).status_code == 200
