"""``MEMLOOP_PROCESSES``: several processes of the store on one port, over a Qdrant server."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from memory_store.settings import Settings
from tests.fakes.model_endpoint import KEY, model_endpoint
from tests.fakes.processes import kill_pid
from tests.fakes.qdrant_server import QdrantStandIn
from tests.fakes.sibling_processes import Siblings, Steady, siblings
from tests.gateway.rig import eventually
from tests.memory_store.api import StoreApi
from tests.memory_store.many_stores import Writers


@pytest.fixture
async def store(redis_url: str, tmp_path: Path) -> AsyncGenerator[Siblings]:
    async with QdrantStandIn().running() as qdrant, model_endpoint() as models:
        environment = {
            "MEMLOOP_REDIS_URL": redis_url,
            "QDRANT_URL": qdrant,
            "MEMLOOP_EMBEDDING_MODEL": "endpoint:m",
            "MEMLOOP_EMBEDDING_URL": models.url,
            "MEMLOOP_EMBEDDING_API_KEY": KEY,
        }
        async with siblings("memory_store.main", tmp_path, environment) as processes:
            yield processes


def connection(store: Siblings) -> httpx.AsyncClient:
    """A client that opens a connection for each request: the kernel gives it to either process."""
    limits = httpx.Limits(max_keepalive_connections=0)
    json_body = {"content-type": "application/json"}
    return httpx.AsyncClient(base_url=store.program.url, limits=limits, headers=json_body, timeout=60)


async def test_what_one_process_stores_both_find(store: Siblings) -> None:
    async with connection(store) as http:
        api = StoreApi(http)
        for number in range(8):
            await api.add(f"key {number}", f"Number {number} lives in Rome.")
        for _ in range(8):
            assert len(await api.search("Rome", top_k=20)) == 8


async def test_counters_are_those_of_both_processes(store: Siblings) -> None:
    answers = [await store.get("/v1/admin/collections") for _ in range(30)]
    assert {status for status, _ in answers} == {200}
    (count,) = await store.samples('memory_store_request_seconds_count{code="200",route="/v1/admin/collections"}')
    assert count.endswith(" 30.0")
    assert len(await store.samples("memory_store_embed_waiting_texts{")) == 2


async def test_writes_go_on_while_one_is_killed_and_replaced(store: Siblings) -> None:
    async with connection(store) as http:
        writers = Writers(lambda: [http], rest_s=0.01)
        async with writers.writing(3) as books:
            await writers.wait_for(20)
            before = store.pids
            kill_pid(before[0])
            await eventually(lambda: len(store.pids) == 2 and before[0] not in store.pids)
            await writers.wait_for(20)
        items = await http.get("/v1/items", params={"tenant": "t", "user_id": "user0", "limit": 1})
        assert items.status_code == 200
    assert len(books.acknowledged) == len(set(books.acknowledged)) >= 40


@pytest.mark.slow
async def test_a_sighup_replaces_them_one_by_one_and_no_request_fails(store: Siblings) -> None:
    async with connection(store) as http:
        writers, load, before = Writers(lambda: [http], rest_s=0.01), Steady(f"{store.program.url}/readyz"), store.pids
        async with load.asking(2), writers.writing(2) as books:
            store.hang_up()
            await store.all_new(before)
            await writers.wait_for(10)
    assert load.failures == []
    assert not books.refused


def test_embedded_vectors_have_one_process(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="MEMLOOP_PROCESSES above 1 needs QDRANT_URL"):
        Settings(processes=2, data_dir=tmp_path)


def test_each_process_has_its_part_of_the_limits() -> None:
    whole = Settings(qdrant_url="http://q:6333", processes=4, embedding_threads=6, embedding_waiting=1000)
    part = whole.of_one_process()
    assert (part.embedding_threads, part.embedding_waiting) == (2, 250)
    assert whole.model_copy(update={"embedding_waiting": 8}).of_one_process().embedding_waiting == whole.embedding_batch


def test_an_empty_number_of_processes_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLOOP_PROCESSES", "")
    assert Settings().processes == 1
