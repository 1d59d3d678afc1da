"""Writes that a Qdrant cluster refuses are on some copies only: repeated or not, all copies agree in the end."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest
from qdrant_client import AsyncQdrantClient, models

from memloop.wire.memory import MemoryDraft, StoreAdd
from memory_store.settings import Settings
from memory_store.vectors.qdrant_server import QdrantServer
from memory_store.vectors.server_setup import ShardConfig
from tests.fakes.processes import PATIENCE_S
from tests.fakes.qdrant_cluster import QdrantCluster
from tests.memory_store.api import ALICE, StoreApi
from tests.memory_store.conftest import app_over, serving

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

_TWO_COPIES = ShardConfig(shards=2, replicas=2, write_consistency=2)
_NAME = "memloop_hashing_64"
_BLUE = "The harbour is blue."


@dataclass
class Stack:
    """Stores over a cluster of two nodes, each of which has a copy of every shard."""

    server: QdrantCluster
    settings: Settings

    @asynccontextmanager
    async def store(self, *, at: int) -> AsyncGenerator[httpx.AsyncClient]:
        """A store at one node, which reads that node's copies."""
        client = AsyncQdrantClient(url=self.server.urls[at], timeout=60, check_compatibility=False)
        async with serving(app_over(QdrantServer(client, _TWO_COPIES), self.settings)) as http:
            yield http

    def copies(self) -> list[set[str]]:
        """The live texts on each node."""
        shards = self.server.copies(_NAME)
        return [{text for shard in shards for text in _live(shard[node])} for node in range(2)]

    async def until_alike(self) -> None:
        """Wait until both nodes have the same points."""
        async with asyncio.timeout(PATIENCE_S):
            while any(first != second for first, second in self.server.copies(_NAME)):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


def _live(copy: dict[str, models.Record]) -> list[str]:
    payloads = [record.payload or {} for record in copy.values()]
    return [str(payload["memory"]) for payload in payloads if payload["status"] == "activated"]


@pytest.fixture
async def stack(settings: Settings) -> AsyncIterator[Stack]:
    server = QdrantCluster(nodes=2)
    async with server.running_nodes():
        yield Stack(server, settings)


async def _add(http: httpx.AsyncClient, value: str = _BLUE) -> httpx.Response:
    draft = MemoryDraft(key="Harbour", value=value)
    body = StoreAdd(namespace=ALICE, drafts=(draft,), event_id="event 1").model_dump_json()
    return await http.post("/v1/items", content=body)


async def test_a_refused_write_that_is_repeated_is_acknowledged_once_every_copy_has_it(stack: Stack) -> None:
    async with stack.store(at=0) as http:
        stack.server.kill(1)
        refused = await _add(http)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "qdrant_consistency")
        assert stack.copies() == [{_BLUE}, set()]
        stack.server.start(1)

        assert (await _add(http)).status_code == 200

    assert stack.copies() == [{_BLUE}, {_BLUE}]


async def test_a_refused_write_repeated_at_another_store_reaches_every_copy(stack: Stack) -> None:
    async with stack.store(at=0) as first, stack.store(at=1) as second:
        stack.server.kill(1)
        assert (await _add(first)).status_code == 503
        stack.server.start(1)

        assert (await _add(second)).status_code == 200

    assert stack.copies() == [{_BLUE}, {_BLUE}]


async def test_a_refused_write_that_nobody_repeats_is_on_every_copy_or_on_none_in_the_end(stack: Stack) -> None:
    async with stack.store(at=0) as http:
        stack.server.kill(1)
        assert (await _add(http)).status_code == 503
        stack.server.start(1)

        await stack.until_alike()


async def test_a_refused_edit_that_nobody_repeats_leaves_one_version_on_every_copy(stack: Stack) -> None:
    async with stack.store(at=0) as http:
        added = await StoreApi(http).add("Harbour", _BLUE)
        stack.server.kill(1)
        change = {"memory": "The harbour is green."}
        edited = await http.patch(f"/v1/items/{added.item.id}", headers=StoreApi(http).tenant, json=change)
        assert edited.status_code == 503, edited.text
        assert stack.copies() == [{"The harbour is green."}, {_BLUE}]
        stack.server.start(1)

        await stack.until_alike()

    assert len(stack.copies()[0]) == 1


async def test_a_write_that_waits_for_a_settling_that_qdrant_refuses_is_refused_with_its_reason(stack: Stack) -> None:
    async with stack.store(at=0) as http:
        stack.server.kill(1)
        assert (await _add(http)).status_code == 503
        repeated = await _add(http)

    assert (repeated.status_code, repeated.json()["error"]["code"]) == (503, "qdrant_consistency")
    assert repeated.headers["Retry-After"] == "2"


async def test_a_flush_that_qdrant_refused_reaches_every_copy_when_it_is_repeated(stack: Stack) -> None:
    async with stack.store(at=0) as http:
        await StoreApi(http).add("Harbour", _BLUE)
        stack.server.kill(1)
        assert (await http.post("/v1/admin/flush")).status_code == 503
        stack.server.start(1)
        flushed = await http.post("/v1/admin/flush")

    assert flushed.status_code == 200, flushed.text
    name = stack.server.aliases["memloop"]
    assert name != _NAME
    assert all(first == second for first, second in stack.server.copies(name))
