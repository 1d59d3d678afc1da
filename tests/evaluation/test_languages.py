"""Recall in eight languages on the same made-up facts, with the English encoder that comes with the store."""

import re

import orjson
import pytest

from evaluation.languages.command import ROWS, main, points_behind_english
from evaluation.languages.recall import KINDS, LANGUAGES, facts, recall
from memory_store.embedding.encoding import Bm25
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL
from tests.fakes.embedder import HashingEncoder
from tests.memory_store.plain_embedder import PlainEmbedder

_GRAMMAR = re.compile("[\u3040-\u309f]|^[\u3400-\u9fff]$|^(?:에서|에게)$")
"""Terms without a meaning of their own: hiragana, a single Han character, two Korean particles."""


def test_each_language_has_the_same_number_of_facts_and_of_statements_that_compete() -> None:
    assert {len(facts(language)) for language in LANGUAGES} == {50}
    assert {sum(bool(fact.questions) for fact in facts(language)) for language in LANGUAGES} == {20}
    assert {tuple(fact.questions) for language in LANGUAGES for fact in facts(language)} == {KINDS, ()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_paraphrase_shares_no_term_with_its_fact(language: str) -> None:
    words = Bm25()
    asked = [fact for fact in facts(language) if fact.questions]
    shared = {fact.text: {*words.terms(fact.text)} & {*words.terms(fact.questions["paraphrased"])} for fact in asked}

    assert [term for terms in shared.values() for term in terms if not _GRAMMAR.search(term)] == []


async def test_words_alone_find_facts_by_other_forms_of_their_words() -> None:
    found = await recall(PlainEmbedder(HashingEncoder()), 64, tuning=ROWS["bm25"], bm25=Bm25())

    assert {language: share for language, share in found["inflected"].items() if share < 85} == {}


@pytest.mark.slow
def test_the_bundled_encoder_follows_a_paraphrase_in_english_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    main([])

    found = orjson.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["model"] == DEFAULT_MODEL
    assert points_behind_english(found["search"]["inflected"]) <= 10
    assert found["search"]["inflected"]["en"] >= 90
    assert found["search"]["paraphrased"]["en"] >= 80
    assert found["points_behind_english"]["paraphrased"] > 10
    assert found["goals"] == {"points_behind_english": "missed"}
