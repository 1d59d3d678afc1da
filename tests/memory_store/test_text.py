"""Pure text rules: what makes two memories the same, and the words that BM25 sees."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.wire.memory import MemoryDraft, Namespace
from memory_store.embedding.encoding import Bm25, TextEncoding
from memory_store.items.identity import (
    chain_id,
    content_hash,
    normalised_key,
    normalised_value,
    raw_turn_id,
    version_id,
)

_BM25 = Bm25()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("City", " city "),
        ("The user's favourite colour", "user favourite-colour"),
        ("home_town", "Home town"),
        ("Ｃａｆé", "café"),
        ("Straße", "STRASSE"),
    ],
)
def test_keys_that_differ_in_form_only_are_one(one: str, other: str) -> None:
    assert normalised_key(one) == normalised_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("city", "cities"),
        ("pet 1", "pet 2"),
        ("!", "?"),
        ("the", "a"),
        ("दादा का नाम", "दादी का नाम"),
        ("บ้านเกิด", "บานเกิด"),
        ("level of C++", "level of C#"),
        ("level of C", "level of C#"),
        ("lowest at -5", "lowest at 5"),
        ("price in $", "price in €"),
        ("reply 👍", "reply 👎"),
    ],
)
def test_keys_that_differ_in_words_are_two(one: str, other: str) -> None:
    assert normalised_key(one) != normalised_key(other)


def test_values_differ_by_what_stands_inside_but_not_by_their_form() -> None:
    assert content_hash("Lives in  ROME. ") == content_hash("lives in rome")
    assert content_hash("3.5") != content_hash("35")
    assert content_hash("He is not tall") != content_hash("He is tall")


@given(st.text(max_size=40))
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert normalised_value(normalised_value(text)) == normalised_value(text)


def test_ids_are_the_same_in_every_process() -> None:
    chain = chain_id(Namespace(tenant="t", user_id="u"), "LongTermMemory", "City", "Rome")

    assert chain == "4404ea1b-a054-5ea6-bc20-5e0159635f81"
    assert version_id(chain, content_hash("Rome"), 1) == "7fe19189-5ade-57c4-8fc3-37e37126eedb"


def test_the_ids_of_a_namespace_do_not_run_into_one_another() -> None:
    names = [("a", "b", None, None), ("a", "b", "c", None), ("a", "b", None, "c"), ("a", "b", "", "c")]
    spaces = [
        Namespace.model_construct(tenant=tenant, user_id=user, agent_id=agent, run_id=run)
        for tenant, user, agent, run in names
    ]

    assert len({chain_id(space, "LongTermMemory", "k", "v") for space in spaces}) == 4


def test_equal_raw_turns_of_different_writes_are_different_turns() -> None:
    draft = MemoryDraft(key="turn", value="yes", memory_type="RawTurn")
    space = Namespace(tenant="t", user_id="u")

    assert raw_turn_id(space, draft, None, "e1") != raw_turn_id(space, draft, None, "e2")


def test_terms_are_folded_stemmed_and_free_of_function_words() -> None:
    assert _BM25.terms("The Cats were running to the HARBOURS!") == ["cat", "run", "harbour"]


def test_scripts_without_spaces_are_cut_into_pairs() -> None:
    terms = _BM25.terms("我喜欢猫 abc")
    assert [term for term in terms if len(term) > 1] == ["我喜", "喜欢", "欢猫", "abc"]
    assert {term for term in terms if len(term) == 1} == set("我喜欢猫")
    assert _BM25.terms("猫") == ["猫"]


def test_words_of_a_query_weigh_one() -> None:
    assert _BM25.query("cat cat dog").values == (1.0, 1.0)


def test_a_repeated_word_weighs_more_but_less_than_twice_as_much() -> None:
    once, twice = _BM25.document("cat dog"), _BM25.document("cat cat dog")
    weight = dict(zip(twice.indices, twice.values, strict=True))
    [cat] = _BM25.query("cat").indices
    before = dict(zip(once.indices, once.values, strict=True))[cat]

    assert before < weight[cat] < 2 * before


def test_text_without_words_has_no_terms() -> None:
    assert not _BM25.document("?! … \x00").indices


@given(st.text(max_size=200))
def test_any_text_can_be_encoded(text: str) -> None:
    vector = _BM25.document(text)

    assert len(set(vector.indices)) == len(vector.values)
    assert all(0 <= index < 2**32 for index in vector.indices)


class Still:
    """An embedder that takes no time."""

    async def embed(self, texts: Sequence[str]) -> Sequence[tuple[float, ...]]:
        return [(1.0,)] * len(texts)

    async def embed_query(self, text: str) -> tuple[float, ...]:
        del text
        return (1.0,)


async def test_long_texts_are_stemmed_beside_the_event_loop() -> None:
    encoding = TextEncoding(Still(), Bm25())
    text = " ".join(f"wandering{number}ly" for number in range(6000))

    encoded = asyncio.create_task(encoding.documents([text] * 3))
    turns = 0
    while not encoded.done():
        await asyncio.sleep(0.001)
        turns += 1

    assert turns > 3
    assert [sparse for _, sparse in encoded.result()] == [Bm25().document(text)] * 3
    assert await encoding.query(text) == ((1.0,), Bm25().query(text))
