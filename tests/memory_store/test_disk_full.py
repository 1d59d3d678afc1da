"""The store's process on a disk that fills up: it refuses writes, goes on reading and erasing, and never dies."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from memloop.chores import alongside
from tests.fakes.model_endpoint import KEY, model_endpoint
from tests.fakes.processes import PATIENCE_S
from tests.fakes.service_process import ServiceProcess
from tests.fakes.small_disk import small_disk, weigh_down

_MIB = 1024**2
_DISK_BYTES = 176 * _MIB
_FREE_BYTES = 48 * _MIB
_WRITES = 300
_STEP_BYTES = 2 * _MIB
_USERS = 10
_SEARCH = {"namespace": {"tenant": "t", "user_id": "u0"}, "query": "tide", "top_k": 5}
_TEXT = "Ada keeps the harbour's tide tables. " * 200


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    with small_disk(tmp_path / "disk", size_bytes=_DISK_BYTES) as folder:
        yield folder


@asynccontextmanager
async def running(redis_url: str, disk: Path, logs: Path) -> AsyncGenerator[tuple[ServiceProcess, httpx.AsyncClient]]:
    """The store over the disk, and a client."""
    async with model_endpoint() as models:
        environment = {
            "MEMLOOP_REDIS_URL": redis_url,
            "MEMLOOP_DATA_DIR": str(disk / "edge"),
            "MEMLOOP_EDGE_FREE_BYTES": str(_FREE_BYTES),
            "MEMLOOP_EDGE_FLUSH_S": "0.2",
            "MEMLOOP_EMBEDDING_MODEL": "endpoint:m",
            "MEMLOOP_EMBEDDING_URL": models.url,
            "MEMLOOP_EMBEDDING_API_KEY": KEY,
        }
        process = await ServiceProcess.start("memory_store.main", logs, environment)
        headers = {"content-type": "application/json"}
        try:
            async with httpx.AsyncClient(base_url=process.url, headers=headers, timeout=PATIENCE_S) as http:
                yield process, http
        finally:
            await process.kill()


def fact(number: int) -> dict[str, object]:
    draft = {"memory_type": "LongTermMemory", "key": f"key {number}", "value": f"{number} {_TEXT}"}
    return {"namespace": {"tenant": "t", "user_id": f"u{number % _USERS}"}, "drafts": [draft]}


async def stored(http: httpx.AsyncClient) -> set[str]:
    """The keys of all memories."""
    found = set[str]()
    for user in range(_USERS):
        cursor = None
        while cursor != "":
            query = {"tenant": "t", "user_id": f"u{user}"} | ({"cursor": cursor} if cursor else {})
            page = (await http.get("/v1/items", params=query)).json()
            found |= {item["key"] for item in page["items"]}
            cursor = page["next_cursor"] or ""
    return found


async def test_hundreds_of_writes_around_the_threshold_lose_nothing(redis_url: str, disk: Path, tmp_path: Path) -> None:
    acknowledged, refused = set[str](), list[httpx.Response]()
    async with running(redis_url, disk, tmp_path) as (process, http):
        for number in range(_WRITES):
            if number % 20 == 0:
                weigh_down(disk / "ballast", leave=_FREE_BYTES + (number // 20 % 3 - 1) * _STEP_BYTES)
            response = await http.post("/v1/items", json=fact(number))
            if response.status_code == 200:
                acknowledged.add(f"key {number}")
            else:
                refused.append(response)
        weigh_down(disk / "ballast", leave=_FREE_BYTES - _STEP_BYTES)
        found = await stored(http)
        searched = await http.post("/v1/items/search", json=_SEARCH)
        ready, metrics = await http.get("/readyz"), await http.get("/metrics")
        erased = await http.delete("/v1/namespaces", params={"tenant": "t", "user_id": "u1"})
        alive = process.process.returncode is None

    assert alive, process.log.read_text()[-2000:]
    assert (acknowledged - found, len(acknowledged) > 50, len(refused) > 50) == (set(), True, True)
    assert {(one.status_code, one.json()["error"]["code"]) for one in refused} == {(503, "insufficient_storage")}
    assert {one.headers["retry-after"] for one in refused} == {"30"}
    assert "48 MiB" in refused[0].json()["error"]["message"]
    assert (searched.status_code, len(searched.json()["results"])) == (200, 5)
    assert (ready.status_code, "is full" in ready.json()["warnings"]["vectors"]) == (200, True)
    assert "memory_store_disk_full 1.0" in metrics.text
    assert (erased.status_code, erased.json()["vectors"] > 0) == (200, True)


async def test_a_disk_without_a_single_free_byte_stops_writes_and_not_the_process(
    redis_url: str, disk: Path, tmp_path: Path
) -> None:
    ballast = disk / "ballast"
    async with running(redis_url, disk, tmp_path) as (process, http):
        for number in range(100):
            assert (await http.post("/v1/items", json=fact(number))).status_code == 200
        weigh_down(ballast, leave=0)
        writes = {(await http.post("/v1/items", json=fact(number))).status_code for number in range(100, 130)}
        erasure = await http.delete("/v1/namespaces", params={"tenant": "t", "user_id": "u1"})
        await http.post("/v1/admin/flush")
        await asyncio.sleep(1)
        kept, searched = await stored(http), await http.post("/v1/items/search", json=_SEARCH)
        alive = process.process.returncode is None
        ballast.unlink()
        later = await http.post("/v1/items", json=fact(130))
        erased = await http.delete("/v1/namespaces", params={"tenant": "t", "user_id": "u1"})

    assert alive, process.log.read_text()[-2000:]
    assert (writes, erasure.status_code) == ({503}, 503)
    assert kept == {f"key {number}" for number in range(100)}
    assert (searched.status_code, later.status_code) == (200, 200)
    assert (erased.status_code, erased.json()["vectors"]) == (200, 10)


async def test_a_store_that_starts_on_a_full_disk_waits_for_room(redis_url: str, disk: Path, tmp_path: Path) -> None:
    async with running(redis_url, disk, tmp_path) as (_, http):
        assert (await http.post("/v1/items", json=fact(1))).status_code == 200
    weigh_down(disk / "ballast", leave=0)

    def says_so() -> bool:
        return any("is full" in log.read_text() for log in tmp_path.glob("*.log"))

    async def make_room_once_it_says_so() -> None:
        while not says_so():  # noqa: ASYNC110 - a log is read
            await asyncio.sleep(0.05)
        (disk / "ballast").unlink()

    async with alongside(make_room_once_it_says_so()), running(redis_url, disk, tmp_path) as (_, http):
        found = await stored(http)

    assert found == {"key 1"}
