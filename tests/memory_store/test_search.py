"""What a search finds, through the HTTP API."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest
from pydantic import JsonValue

from memloop.wire.memory import MemoryDraft, Namespace
from memory_store.settings import Settings
from memory_store.vectors.filters import Condition, Ids
from memory_store.vectors.port import Query, Ranked
from memory_store.vectors.qdrant_edge import QdrantEdge
from tests.memory_store.api import StoreApi, day
from tests.memory_store.conftest import app_over, serving


class GoneWhenRanked(QdrantEdge):
    """Another process deletes a point between the ranking and the reading."""

    goes = ""

    async def rank(
        self, queries: Sequence[Query], *, where: Condition, corpus: Condition, limit: int
    ) -> Sequence[Sequence[Ranked]]:
        """Rank, then lose the point."""
        found = await super().rank(queries, where=where, corpus=corpus, limit=limit)
        await self.delete(where=Ids((self.goes,)))
        return found


async def test_the_memory_that_shares_words_comes_first(store: StoreApi) -> None:
    await store.add("Pet", "Alice has a grey cat")
    await store.add("City", "Alice lives in Rome")

    assert (await store.found("which cats does she have"))[0] == "Alice has a grey cat"


async def test_the_score_is_the_sum_of_the_shares_that_explain_names(store: StoreApi) -> None:
    await store.add("Pet", "a grey cat")
    await store.add("City", "Rome by the river")

    [best, other] = await store.search("grey cat")
    [explained, _] = await store.search("grey cat", explain=True)

    assert best.score_breakdown == {}
    assert other.score < best.score
    shares = [share for name, share in explained.score_breakdown.items() if not name.endswith(("_rank", "_score"))]
    assert sum(shares) == pytest.approx(explained.score) == pytest.approx(best.score)


async def test_equal_scores_fall_by_time_the_newest_first(store: StoreApi) -> None:
    for key, number in (("a", 1), ("a g", 4), ("a gr", 2), ("a gre", 3)):
        await store.add(key, "a grey cat", timestamp=day(number))

    hits = await store.search("grey cat")

    assert [hit.item.valid_from for hit in hits] == [day(4), day(3), day(2), day(1)]
    assert len({round(hit.score, 6) for hit in hits}) == 1


async def test_a_question_without_words_ranks_by_meaning_alone(store: StoreApi) -> None:
    await store.add("Pet", "a grey cat")

    [hit] = await store.search("?!", explain=True)

    assert hit.item.memory == "a grey cat"
    assert {"dense_rank", "sparse_rank"} & hit.score_breakdown.keys() == {"dense_rank"}


async def test_explain_names_both_ranks_and_scores(store: StoreApi) -> None:
    await store.add("Pet", "a grey cat")
    await store.add("City", "Rome by the river")

    best, other = await store.search("grey cat", explain=True)

    assert (best.score_breakdown["dense_rank"], best.score_breakdown["sparse_rank"]) == (1, 1)
    assert best.score_breakdown["sparse_score"] > 0
    assert "sparse_rank" not in other.score_breakdown
    assert other.score_breakdown["dense_rank"] == 2


async def test_the_words_of_another_user_move_no_score(store: StoreApi) -> None:
    await store.add("Pet", "a grey cat")
    [before] = await store.search("grey cat", explain=True)

    other = replace(store, namespace=Namespace(tenant="t1", user_id="bob"))
    await other.add_all(*(MemoryDraft(key=f"k{number}", value=f"grey wall {number}") for number in range(9)))

    assert await store.search("grey cat", explain=True) == [before]


async def test_what_is_gone_once_it_was_ranked_is_not_found(settings: Settings) -> None:
    vectors = GoneWhenRanked(settings.data_dir, flush_s=60)
    async with serving(app_over(vectors, settings)) as http:
        store = StoreApi(http)
        await store.add("Wall", "a grey wall")
        vectors.goes = (await store.add("Pet", "a grey cat")).item.id

        assert await store.found("grey cat") == ["a grey wall"]


async def test_threshold_drops_lower_scores(store: StoreApi) -> None:
    await store.add("Pet", "a grey cat")
    await store.add("City", "Rome by the river")

    [best, other] = await store.search("grey cat")
    between = (best.score + other.score) / 2

    assert await store.found("grey cat", threshold=between) == ["a grey cat"]


async def test_top_k_limits(store: StoreApi) -> None:
    await store.add_all(*(MemoryDraft(key=f"k{number}", value=f"cat {number}") for number in range(5)))

    assert len(await store.found("cat", top_k=2)) == 2


async def test_max_tokens_leaves_out_what_does_not_fit(store: StoreApi) -> None:
    await store.add("long", "cat " * 500)
    await store.add("short", "a cat")

    assert await store.found("cat", max_tokens=20) == ["a cat"]


async def test_raw_turns_are_found_only_when_asked_for(store: StoreApi) -> None:
    await store.add("turn", "my cat is grey", kind="RawTurn")

    assert await store.found("cat") == []
    assert await store.found("cat", include_raw=True) == ["my cat is grey"]


async def test_as_of_finds_what_held_then(store: StoreApi) -> None:
    await store.add("City", "lives in Rome", timestamp=day(2))
    await store.add("City", "lives in Oslo", timestamp=day(5))

    assert await store.found("lives", as_of=day(1)) == []
    assert await store.found("lives", as_of=day(2)) == ["lives in Rome"]
    assert await store.found("lives", as_of=day(4)) == ["lives in Rome"]
    assert await store.found("lives", as_of=day(5)) == ["lives in Oslo"]


async def test_all_versions_are_found_when_asked_for(store: StoreApi) -> None:
    await store.add("City", "lives in Rome", timestamp=day(2))
    await store.add("City", "lives in Oslo", timestamp=day(5))

    assert sorted(await store.found("lives", latest_only=False)) == ["lives in Oslo", "lives in Rome"]
    assert await store.found("lives", latest_only=False, as_of=day(3)) == ["lives in Rome"]


async def test_expired_memories_are_not_found(store: StoreApi) -> None:
    await store.add("Code", "the code is 1234", expires_at=day(1))

    assert await store.found("code") == []
    assert (await store.page()).items == ()


async def test_a_namespace_that_leaves_ids_open_finds_all_of_them(store: StoreApi) -> None:
    await store.of(agent_id="a", run_id="r").add("City", "lives in Rome")
    await store.of(agent_id="b").add("City", "lives in Oslo")

    assert sorted(await store.found("lives")) == ["lives in Oslo", "lives in Rome"]
    assert await store.of(agent_id="b").found("lives") == ["lives in Oslo"]
    assert await store.of(agent_id="a", run_id="other").found("lives") == []


_FILTERS: list[tuple[dict[str, JsonValue], list[str]]] = [
    ({"topic": "food"}, ["eats fish"]),
    ({"metadata.topic": {"eq": "food"}}, ["eats fish"]),
    ({"metadata": {"topic": "food"}}, ["eats fish"]),
    ({"topic": {"ne": "food"}}, ["owns a boat", "plays chess"]),
    ({"topic": {"in": ["food", "game"]}}, ["eats fish", "plays chess"]),
    ({"topic": ["food", "game"]}, ["eats fish", "plays chess"]),
    ({"rank": {"gte": 2}}, ["owns a boat", "plays chess"]),
    ({"rank": {"gt": 2, "lt": 3}}, ["plays chess"]),
    ({"rank": 2}, ["owns a boat"]),
    ({"rank": {"in": [1, 2.5]}}, ["eats fish", "plays chess"]),
    ({"done": True}, ["eats fish"]),
    ({"done": {"ne": True}}, ["owns a boat", "plays chess"]),
    ({"done": False}, ["plays chess"]),
    ({"done": "*"}, ["eats fish", "plays chess"]),
    ({"done": None}, ["owns a boat"]),
    ({"memory": {"contains": "a b"}}, ["owns a boat"]),
    ({"tags": "sport"}, ["plays chess"]),
    ({"tags": {"contains": "spo"}}, ["plays chess"]),
    ({"created_at": {"gte": "2026-01-01"}}, ["eats fish", "owns a boat", "plays chess"]),
    ({"valid_from": {"lt": "2026-01-02T00:00:00Z"}}, ["eats fish"]),
    ({"when": {"gte": "2025-06-01"}}, ["owns a boat"]),
    ({"memory_type": "UserMemory"}, ["owns a boat"]),
    ({"AND": [{"rank": {"gte": 1}}, {"NOT": {"topic": "food"}}]}, ["owns a boat", "plays chess"]),
    ({"OR": [{"topic": "food"}, {"tags": "sport"}]}, ["eats fish", "plays chess"]),
    ({"NOT": [{"topic": "food"}, {"tags": "sport"}]}, ["owns a boat"]),
    ({"topic": "game", "rank": 1}, []),
    ({"tenant": "t1"}, []),
    ({}, ["eats fish", "owns a boat", "plays chess"]),
]


@pytest.mark.parametrize(("filters", "expected"), _FILTERS, ids=[str(filters) for filters, _ in _FILTERS])
async def test_filters_narrow_a_search(store: StoreApi, filters: dict[str, JsonValue], expected: list[str]) -> None:
    await store.add("a", "eats fish", metadata={"topic": "food", "rank": 1, "done": True}, timestamp=day(1))
    await store.add_all(
        MemoryDraft(key="b", value="owns a boat", memory_type="UserMemory"),
        metadata={"rank": 2, "when": "2025-07-01T00:00:00Z"},
        timestamp=day(2),
    )
    await store.add_all(
        MemoryDraft(key="c", value="plays chess", tags=("sport",)),
        metadata={"topic": "game", "rank": 2.5, "done": False, "when": "2025-05-01T00:00:00+02:00"},
        timestamp=day(3),
    )

    assert sorted(await store.found("what", filters=filters)) == expected


_SECOND = 1_767_398_400  # 2026-01-03T00:00:00Z
_TIMES: list[tuple[JsonValue, list[str]]] = [
    ("2026-01-03T00:00:00Z", ["second"]),
    ("2026-01-03T00:00:00+00:00", ["second"]),
    ("2026-01-03T09:00:00+09:00", ["second"]),
    ("2026-01-02", ["first"]),
    ({"eq": _SECOND}, ["second"]),
    ({"ne": "2026-01-03T09:00:00+09:00"}, ["first"]),
    ({"in": ["2026-01-03T01:00:00+01:00", "2026-01-05"]}, ["second"]),
    (["2026-01-02", _SECOND], ["first", "second"]),
    ({"gte": _SECOND - 1}, ["second"]),
    ({"gte": _SECOND + 86_400}, []),
    ({"lte": _SECOND + 86_400}, ["first", "second"]),
    ({"lt": float(_SECOND)}, ["first"]),
    ({"gt": "2026-01-02", "lt": _SECOND}, []),
    ("*", ["first", "second"]),
    (None, []),
]


@pytest.mark.parametrize(("wanted", "expected"), _TIMES, ids=[str(wanted) for wanted, _ in _TIMES])
async def test_times_are_compared_as_instants(store: StoreApi, wanted: JsonValue, expected: list[str]) -> None:
    await store.add("a", "first", timestamp=datetime(2026, 1, 2, 18, tzinfo=UTC))
    await store.add("b", "second", timestamp=day(3))

    assert sorted(await store.found("what", filters={"valid_from": wanted})) == expected


_DOTTED: list[tuple[dict[str, JsonValue], list[str]]] = [
    ({"c.d": "x"}, ["inside", "one key"]),
    ({"metadata.c.d": {"eq": "x"}}, ["inside", "one key"]),
    ({"metadata": {"c.d": "x"}}, ["inside", "one key"]),
    ({"c.d": {"contains": "x"}}, ["inside", "one key"]),
    ({"c.d": {"in": ["x", "y"]}}, ["inside", "one key"]),
    ({"c.d": {"ne": "x"}}, ["neither"]),
    ({"c.d": "*"}, ["inside", "one key"]),
    ({"c.d": None}, ["neither"]),
    ({"e.f": {"gt": 2}}, ["inside", "one key"]),
    ({"e.f": 3}, ["one key"]),
    ({"yes.no": True}, ["one key"]),
    ({"a.b.c": "deep"}, ["inside", "neither", "one key"]),
]


@pytest.mark.parametrize(("filters", "expected"), _DOTTED, ids=[str(filters) for filters, _ in _DOTTED])
async def test_a_dot_in_a_filter_parts_two_keys_or_stands_in_one(
    store: StoreApi, filters: dict[str, JsonValue], expected: list[str]
) -> None:
    in_one = {"c.d": "x", "e.f": 3, "yes.no": True, "a.b.c": "deep"}
    inside = {"c": {"d": "x"}, "e": {"f": 4}, "yes": {"no": False}, "a": {"b.c": "deep"}}
    neither = {"c": "x", "d": "x", "a.b": {"c": "deep"}}
    for text, metadata in (("one key", in_one), ("inside", inside), ("neither", neither)):
        await store.add(text, text, metadata=metadata)

    assert sorted(await store.found("what", filters=filters)) == expected


_BAD_FILTERS: list[JsonValue] = [
    {"topic": {"like": "x"}},
    {"topic": {}},
    {"topic": {"in": []}},
    {"topic": {"in": "x"}},
    {"OR": []},
    {"AND": {"topic": "x"}},
    {"OR": ["x"]},
    {"a b": 1},
    {"a[]": 1},
    {"": 1},
    {"rank": {"gt": "soon"}},
    {"rank": {"gt": True}},
    {"rank": {"gt": None}},
    {"rank": 10**40},
    {"rank": {"eq": [1]}},
    {"memory": {"contains": 1}},
    {"id": "not-an-id"},
    {"OR": [{"a": number} for number in range(300)]},
    {"created_at": True},
    {"created_at": "yesterday"},
    {"created_at": {"gte": 1_767_398_400_000}},
    {"created_at": {"in": ["2026-01-01", "soon"]}},
    {"a.b.c.d.e.f.g.h.i": 1},
]


@pytest.mark.parametrize("filters", _BAD_FILTERS, ids=lambda filters: str(filters)[:40])
async def test_a_filter_that_cannot_be_understood_is_refused(store: StoreApi, filters: JsonValue) -> None:
    body = {"namespace": store.namespace.model_dump(), "query": "q", "filters": filters}

    response = await store.http.post("/v1/items/search", json=body)

    assert response.status_code == 422
    assert response.json()["error"]["param"] == "filters"


async def test_a_filter_that_is_too_deep_is_refused(store: StoreApi) -> None:
    filters: JsonValue = {"a": 1}
    for _ in range(20):
        filters = {"AND": [filters]}

    response = await store.http.post(
        "/v1/items/search", json={"namespace": store.namespace.model_dump(), "query": "q", "filters": filters}
    )

    assert response.status_code == 422


@pytest.mark.parametrize(
    "query", [" ", "\x00", "?!", "的猫", "x" * 32_768, "\U0001f600"], ids=lambda query: repr(query[:8])
)
async def test_any_query_is_answered(store: StoreApi, query: str) -> None:
    await store.add("Pet", "a grey cat")

    assert await store.found(query) == ["a grey cat"]


async def test_an_empty_query_is_refused(http: httpx.AsyncClient) -> None:
    response = await http.post("/v1/items/search", json={"namespace": {"tenant": "t", "user_id": "u"}, "query": ""})

    assert response.status_code == 422
