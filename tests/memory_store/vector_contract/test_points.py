"""Points, conditions and errors are the same in every vector store."""

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue
from qdrant_client import AsyncQdrantClient

from memloop.wire.errors import Unavailable
from memory_store.vectors.filters import (
    AllOf,
    AnyOf,
    Condition,
    Contains,
    Equals,
    Ids,
    Missing,
    Not,
    NumberRange,
    OneOf,
    TimeRange,
)
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.port import NO_WORDS
from memory_store.vectors.qdrant_server import QdrantServer
from memory_store.vectors.schema import CollectionSpec, EmbeddingMismatch
from tests.fakes.ports import free_port
from tests.memory_store.vector_contract.points import EVERYTHING, SPEC, id_of, point

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")


async def numbers(vectors: LiveCollection, where: Condition) -> list[int]:
    page = await vectors.scroll(where=where, limit=100)
    assert page.next_id is None
    return [found.payload["n"] for found in page.found if isinstance(found.payload["n"], int)]


async def test_a_point_comes_back_with_its_vectors_and_payload(vectors: LiveCollection) -> None:
    stored = point(1, "blue harbour", tenant="t", nested={"a": [1, None, "x"]}, nothing=None, yes=True, half=0.5)
    await vectors.upsert([stored])

    [back] = await vectors.get([id_of(1)], where=EVERYTHING)

    assert back.payload == stored.payload
    assert back.dense == pytest.approx(stored.dense)
    assert dict(zip(back.sparse.indices, back.sparse.values, strict=True)) == pytest.approx(
        dict(zip(stored.sparse.indices, stored.sparse.values, strict=True))
    )


async def test_a_point_without_words_comes_back_without_them(vectors: LiveCollection) -> None:
    await vectors.upsert([point(1)])

    [back] = await vectors.get([id_of(1)], where=EVERYTHING)

    assert back.sparse == NO_WORDS


async def test_an_upsert_replaces_the_whole_payload(vectors: LiveCollection) -> None:
    await vectors.upsert([point(1, old=1)])
    await vectors.upsert([point(1, new=2)])

    [back] = await vectors.get([id_of(1)], where=EVERYTHING)

    assert back.payload == {"n": 1, "new": 2}


async def test_get_gives_only_what_the_condition_allows(vectors: LiveCollection) -> None:
    await vectors.upsert([point(1, tenant="a"), point(2, tenant="b")])

    back = await vectors.get([id_of(1), id_of(2), id_of(9)], where=Equals("tenant", "a"))

    assert [one.id for one in back] == [id_of(1)]


async def test_get_of_no_ids_is_empty(vectors: LiveCollection) -> None:
    assert list(await vectors.get([], where=EVERYTHING)) == []


async def test_scroll_walks_every_point_once_in_pages(vectors: LiveCollection) -> None:
    await vectors.upsert([point(number, tenant="a" if number % 2 else "b") for number in range(1, 12)])
    seen: list[str] = []
    start: str | None = None
    for _ in range(3):
        page = await vectors.scroll(where=Equals("tenant", "a"), limit=2, start_id=start)
        seen += [found.id for found in page.found]
        start = page.next_id

    assert seen == [id_of(number) for number in (1, 3, 5, 7, 9, 11)]
    assert start is None


async def test_count_and_delete_by_condition(vectors: LiveCollection) -> None:
    await vectors.upsert([point(1, tenant="a"), point(2, tenant="b")])

    await vectors.delete(where=Equals("tenant", "a"))

    assert await vectors.count(where=EVERYTHING) == 1
    assert await numbers(vectors, EVERYTHING) == [2]


_DAY = datetime(2026, 1, 2, tzinfo=UTC)
_TEXT: JsonValue = "Likes Blue harbours"
_FILTERS: dict[str, tuple[Condition, list[int]]] = {
    "equals text": (Equals("city", "Rome"), [1]),
    "equals an element of a list": (Equals("tags", "sea"), [1, 2]),
    "equals a big number": (Equals("meta.big", 2**60 + 1), [2]),
    "equals in a nested object": (Equals("meta.kind", "x"), [1]),
    "one of": (OneOf("city", ("Rome", "Oslo")), [1, 2]),
    "one of in a list": (OneOf("tags", ("hill", "lake")), [2]),
    "contains is a part of the text, case counts": (Contains("memory", "Blue har"), [1]),
    "contains with another case": (Contains("memory", "blue har"), []),
    "contains looks into lists": (Contains("tags", "il"), [2]),
    "number range": (NumberRange("meta.age", gte=30, lt=40.5), [1, 2]),
    "number range without its ends": (NumberRange("meta.age", gt=30, lt=40), []),
    "time range": (TimeRange("valid_from", gte=_DAY), [2, 3]),
    "time range without its start": (TimeRange("valid_from", gt=_DAY), [3]),
    "time range to the microsecond": (TimeRange("valid_from", lt=_DAY.replace(microsecond=1)), [1, 2]),
    "time range in other zones": (TimeRange("meta.when", gte=_DAY), [1]),
    "not missing": (Not(Missing("city")), [1, 2]),
    "null is missing": (Missing("valid_to"), [1, 3]),
    "an empty list is missing": (Missing("tags"), [3]),
    "null is not there": (Not(Missing("valid_to")), [2]),
    "an empty list is not there": (Not(Missing("tags")), [1, 2]),
    "not both": (Not(AllOf((Equals("city", "Rome"), Missing("valid_to")))), [2, 3]),
    "not not": (Not(Not(Equals("city", "Rome"))), [1]),
    "ids": (Ids((id_of(1), id_of(3), id_of(9))), [1, 3]),
    "not counts a missing field": (Not(Equals("city", "Rome")), [2, 3]),
    "all of": (AllOf((Equals("tags", "sea"), Equals("city", "Oslo"))), [2]),
    "all of nothing": (AllOf(()), [1, 2, 3]),
    "any of": (AnyOf((Equals("city", "Rome"), NumberRange("n", gte=3))), [1, 3]),
    "not any of": (Not(AnyOf((Equals("city", "Rome"), NumberRange("n", gte=3)))), [2]),
    "nested": (AllOf((AnyOf((Equals("city", "Rome"), Missing("city"))), Not(Equals("n", 3)))), [1]),
}


@pytest.mark.parametrize("name", _FILTERS)
async def test_a_condition_means_the_same_everywhere(vectors: LiveCollection, name: str) -> None:
    where, expected = _FILTERS[name]
    await vectors.upsert(
        [
            point(
                1,
                city="Rome",
                tags=["sea", "sun"],
                memory=_TEXT,
                meta={"age": 30, "kind": "x", "when": "2026-01-02T01:00:00+01:00"},
                valid_from="2026-01-01T00:00:00Z",
                valid_to=None,
            ),
            point(
                2,
                city="Oslo",
                tags=["sea", "hill"],
                memory="Likes hills",
                meta={"age": 40, "big": 2**60 + 1, "when": "2026-01-02T00:59:59+01:00"},
                valid_from="2026-01-02T00:00:00.000000+00:00",
                valid_to="2026-02-01T00:00:00Z",
            ),
            point(3, tags=[], meta={"big": 2**60}, valid_from="2026-01-02T00:00:00.000001Z"),
        ]
    )

    assert await numbers(vectors, where) == expected


@pytest.mark.parametrize(
    "text", ["\x00", "a\x00b", "\U0001f600 ", "'; --", '{"a": 1}', "x" * 100_000], ids=lambda text: repr(text[:12])
)
async def test_any_text_can_be_stored_and_matched(vectors: LiveCollection, text: str) -> None:
    await vectors.upsert([point(1, memory=text)])

    assert await numbers(vectors, Equals("memory", text)) == [1]


async def test_another_model_does_not_start_empty_beside_memories(vectors: LiveCollection) -> None:
    with pytest.raises(EmbeddingMismatch, match=r"memloop_contract_4.*MEMLOOP_EMBEDDING_MODEL"):
        await vectors.open(CollectionSpec("another", 4))


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    nowhere = QdrantServer(AsyncQdrantClient(url=f"http://127.0.0.1:{free_port()}", check_compatibility=False))

    with pytest.raises(Unavailable):
        await nowhere.open(SPEC)

    await nowhere.close()


async def test_the_store_answers_a_ping(vectors: LiveCollection) -> None:
    await vectors.ping()


async def test_the_newest_come_first_and_the_values_of_a_field_are_counted(vectors: LiveCollection) -> None:
    await vectors.upsert(
        [
            point(number, created_at=datetime(2026, 1, number, tzinfo=UTC).isoformat(), user_id=user)
            for number, user in ((2, "ann"), (3, "bob"), (1, "ann"))
        ]
    )

    newest = await vectors.newest(where=EVERYTHING, limit=2)
    assert [found.payload["n"] for found in newest] == [3, 2]
    assert dict(await vectors.values("user_id", where=EVERYTHING, limit=9)) == {"ann": 2, "bob": 1}
    assert dict(await vectors.values("user_id", where=Equals("user_id", "bob"), limit=9)) == {"bob": 1}
