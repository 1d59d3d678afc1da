"""Adds of several users that arrive at once: one write of the vector store, an outcome for each."""

import asyncio
from collections.abc import Sequence

import httpx

from memloop.wire.errors import DependencyError
from memloop.wire.memory import MemoryDraft, Namespace, StoreAdd, StoreAddResult
from memory_store.settings import Settings
from memory_store.vectors.port import Point
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.memory_store.api import StoreApi
from tests.memory_store.conftest import app_over, serving

USERS = 12


class Counting(QdrantEdge):
    """Notes the number of points of each write; refuses a write with the text ``poison`` in it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.data_dir, flush_s=60)
        self.writes: list[int] = []

    async def upsert(self, points: Sequence[Point]) -> None:
        if any(point.payload["memory"] == "poison" for point in points):
            raise DependencyError("this point cannot be stored")
        self.writes.append(len(points))
        await super().upsert(points)


def user(number: int) -> Namespace:
    return Namespace(tenant="t1", user_id=f"user-{number}")


async def added(http: httpx.AsyncClient, number: int, text: str, **fields: object) -> httpx.Response:
    drafts = (MemoryDraft(key="City", value=text),)
    request = StoreAdd.model_validate({"namespace": user(number), "drafts": drafts, **fields})
    return await http.post("/v1/items", content=request.model_dump_json())


async def test_adds_that_arrive_at_once_are_stored_together_and_each_is_found(settings: Settings) -> None:
    vectors = Counting(settings)
    async with serving(app_over(vectors, settings)) as http:
        answers = await asyncio.gather(*(added(http, number, f"Town {number}") for number in range(USERS)))
        memories = [await StoreApi(http, user(number)).found("town") for number in range(USERS)]

    assert [answer.status_code for answer in answers] == [200] * USERS
    written = [StoreAddResult.model_validate_json(answer.content).results[0] for answer in answers]
    assert [one.item.memory for one in written] == [f"Town {number}" for number in range(USERS)]
    assert memories == [[f"Town {number}"] for number in range(USERS)]
    assert sum(vectors.writes) == USERS
    assert len(vectors.writes) < USERS


async def test_adds_of_one_user_that_arrive_at_once_are_resolved_one_after_another(settings: Settings) -> None:
    vectors = Counting(settings)
    async with serving(app_over(vectors, settings)) as http:
        answers = await asyncio.gather(*(added(http, 0, f"Town {number}") for number in range(5)))
        written = [StoreAddResult.model_validate_json(answer.content).results[0] for answer in answers]

    assert sorted(one.outcome for one in written) == ["inserted", *["superseded"] * 4]
    assert sorted(one.item.version for one in written) == [1, 2, 3, 4, 5]


async def test_an_add_that_cannot_be_stored_fails_alone(settings: Settings) -> None:
    vectors = Counting(settings)
    async with serving(app_over(vectors, settings)) as http:
        texts = ["Rome", "poison", "Oslo", "Kyiv"]
        answers = await asyncio.gather(*(added(http, number, text) for number, text in enumerate(texts)))
        memories = [await StoreApi(http, user(number)).found("city") for number in range(4)]

    assert [answer.status_code for answer in answers] == [200, 502, 200, 200]
    assert memories == [["Rome"], [], ["Oslo"], ["Kyiv"]]


async def test_a_stale_token_refuses_its_own_add_only(settings: Settings) -> None:
    async with serving(app_over(Counting(settings), settings)) as http:
        await added(http, 1, "Rome", fencing_token=9)
        answers = await asyncio.gather(*(added(http, number, "Oslo", fencing_token=8) for number in range(3)))
        memories = [await StoreApi(http, user(number)).found("city") for number in range(3)]

    assert [answer.status_code for answer in answers] == [200, 409, 200]
    assert memories == [["Oslo"], ["Rome"], ["Oslo"]]
