"""Rankings by meaning, by words and by place are the same in every vector store."""

import pytest

from memory_store.vectors.filters import Condition, Equals, NumberRange
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.port import Placed, Query
from tests.memory_store.vector_contract.points import BM25, EVERYTHING, id_of, point

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

_ABOUT_ONE = (1.0, 0.0, 0.0, 0.0)


async def ranked(
    vectors: LiveCollection, *queries: Query, where: Condition = EVERYTHING, corpus: Condition = EVERYTHING
) -> list[list[str]]:
    """The ids by each query."""
    found = await vectors.rank(queries, where=where, corpus=corpus, limit=3)
    return [[one.id for one in ranking] for ranking in found]


async def test_the_nearest_come_by_cosine_with_their_payloads(vectors: LiveCollection) -> None:
    await vectors.upsert([point(1, dense=(0, 1, 0, 0)), point(2, dense=(1, 0, 0, 0)), point(3, dense=(1, 1, 0, 0))])

    found = await vectors.nearest(_ABOUT_ONE, where=EVERYTHING, limit=10)

    assert [one.payload["n"] for one in found] == [2, 3, 1]
    assert [one.score for one in found] == pytest.approx([1.0, 2**-0.5, 0.0], abs=1e-6)


async def test_the_nearest_stay_within_their_condition_and_limit(vectors: LiveCollection) -> None:
    await vectors.upsert([point(number, "blue", tenant="a" if number < 5 else "b") for number in range(1, 9)])

    found = await vectors.nearest(_ABOUT_ONE, where=Equals("tenant", "b"), limit=3)

    assert [one.payload["tenant"] for one in found] == ["b", "b", "b"]


async def test_a_dense_vector_ranks_by_cosine(vectors: LiveCollection) -> None:
    await vectors.upsert([point(1, dense=(0, 1, 0, 0)), point(2, dense=(1, 0, 0, 0)), point(3, dense=(1, 1, 0, 0))])

    [found] = await vectors.rank([_ABOUT_ONE], where=EVERYTHING, corpus=EVERYTHING, limit=10)

    assert [one.id for one in found] == [id_of(2), id_of(3), id_of(1)]
    assert [one.score for one in found] == pytest.approx([1.0, 2**-0.5, 0.0], abs=1e-6)


async def test_places_come_in_order_within_a_condition(vectors: LiveCollection) -> None:
    far = -(2**61) - 1
    places = {1: 7 * 2**30, 2: far, 3: 7 * 2**30 + 1, 4: 2**61 + 1, 5: 7 * 2**30 + 2}
    await vectors.upsert([point(number, place=place) for number, place in places.items()])
    await vectors.upsert([point(6)])

    every = await vectors.placed(where=EVERYTHING, limit=10)
    near = await vectors.placed(where=NumberRange("place", gte=7 * 2**30 - 2**20, lte=7 * 2**30 + 2**20), limit=2)

    assert every == [Placed(id_of(number), places[number]) for number in (2, 1, 3, 5, 4)]
    assert near == [Placed(id_of(1), places[1]), Placed(id_of(3), places[3])]


async def test_a_place_in_a_ranking_is_the_present_one_or_none(vectors: LiveCollection) -> None:
    await vectors.upsert([point(1, place=5), point(2, place=6), point(3)])
    await vectors.upsert([point(2, place=2**61 + 1)])
    await vectors.placed(where=EVERYTHING, limit=10)

    [found] = await vectors.rank([_ABOUT_ONE], where=EVERYTHING, corpus=EVERYTHING, limit=10)

    allowed = {id_of(1): {5, None}, id_of(2): {2**61 + 1, None}, id_of(3): {None}}
    assert len(found) == 3
    assert all(one.place in allowed[one.id] for one in found)


async def test_words_find_only_what_shares_them_and_prefer_rare_ones(vectors: LiveCollection) -> None:
    await vectors.upsert([point(1, "blue boat"), point(2, "blue harbour"), point(3, "blue sky"), point(4, "red roof")])

    [found] = await ranked(vectors, BM25.query("the blue harbours"))

    assert found[0] == id_of(2)
    assert sorted(found) == [id_of(1), id_of(2), id_of(3)]


async def test_words_are_rare_or_common_within_the_corpus_only(vectors: LiveCollection) -> None:
    mine, theirs = Equals("tenant", "a"), Equals("tenant", "b")
    await vectors.upsert([point(1, "blue boat", tenant="a"), point(2, "red boat", tenant="a")])
    query = BM25.query("blue boat")
    [before] = await vectors.rank([query], where=mine, corpus=mine, limit=10)

    await vectors.upsert([point(number, "blue blue", tenant="b") for number in range(3, 30)])

    [after] = await vectors.rank([query], where=mine, corpus=mine, limit=10)
    assert [one.score for one in after] == pytest.approx([one.score for one in before])
    assert all(await ranked(vectors, query, where=theirs, corpus=theirs))


async def test_many_rankings_come_in_their_order(vectors: LiveCollection) -> None:
    await vectors.upsert([point(1, "red boat"), point(2, "blue kite", dense=(0, 1, 0, 0))])
    by_meaning = (0.0, 1.0, 0.0, 0.0)

    found = await ranked(vectors, by_meaning, BM25.query("boat"), by_meaning)

    assert [ranking[0] for ranking in found] == [id_of(2), id_of(1), id_of(2)]


async def test_rankings_stay_within_their_condition_and_limit(vectors: LiveCollection) -> None:
    await vectors.upsert([point(number, "blue", tenant="a" if number < 5 else "b") for number in range(1, 10)])

    found = await ranked(vectors, _ABOUT_ONE, BM25.query("blue"), where=Equals("tenant", "b"))

    assert [len(ranking) for ranking in found] == [3, 3]
    assert {one for ranking in found for one in ranking} <= {id_of(number) for number in range(5, 10)}
