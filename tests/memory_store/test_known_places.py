"""A search of a user whose memories were met before asks for fewer of them, and finds the same."""

from collections.abc import Sequence

from memloop.wire.memory import SearchHit
from memory_store.settings import Settings
from memory_store.vectors.filters import Condition
from memory_store.vectors.port import Placed
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.memory_store.api import StoreApi, day
from tests.memory_store.conftest import app_over, serving

QUESTION = "Who was at the harbour?"


class Counting(QdrantEdge):
    """Counts the queries by place."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.data_dir, flush_s=60)
        self.by_place = 0

    async def placed(self, *, where: Condition, limit: int) -> Sequence[Placed]:
        self.by_place += 1
        return await super().placed(where=where, limit=limit)


async def conversation(store: StoreApi) -> None:
    for number, text in enumerate(
        ["We went to the harbour.", "Anna was there too.", "It rained.", "Bo stayed at home."]
    ):
        await store.add(f"turn {number}", text, timestamp=day(1 + number // 3))


async def explained(store: StoreApi) -> list[tuple[str, dict[str, float]]]:
    hits: list[SearchHit] = await store.search(QUESTION, explain=True)
    return [(hit.item.memory, hit.score_breakdown) for hit in hits]


async def test_places_that_are_known_give_the_same_result_as_those_that_are_read(settings: Settings) -> None:
    first = Counting(settings)
    async with serving(app_over(first, settings)) as http:
        await conversation(StoreApi(http))
        known = await explained(StoreApi(http))
    again = Counting(settings)
    async with serving(app_over(again, settings)) as http:
        read = await explained(StoreApi(http))
        met = await explained(StoreApi(http))

    assert any("neighbour" in shares for _, shares in read)
    assert known == read == met
    assert (first.by_place, again.by_place) == (0, 1)


async def test_a_memory_whose_time_has_changed_is_found_at_its_new_place(settings: Settings) -> None:
    async with serving(app_over(Counting(settings), settings)) as http:
        store = StoreApi(http)
        await conversation(store)
        await explained(store)
        await store.add("turn 3", "Bo stayed at home.", timestamp=day(1))  # it has held since then
        known = await explained(store)
    async with serving(app_over(Counting(settings), settings)) as http:
        read = await explained(StoreApi(http))

    assert known == read
