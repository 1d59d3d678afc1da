"""Recall in eight languages on the same made-up facts, with the English encoder that comes with the store."""

import orjson
import pytest

from evaluation.languages.command import ROWS, main
from evaluation.languages.recall import LANGUAGES, facts, recall
from memory_store.embedding.sentence_encoder import DEFAULT_MODEL
from memory_store.embedding.sparse import Bm25
from tests.fakes.embedder import HashingEncoder
from tests.memory_store.plain_embedder import PlainEmbedder


def test_each_language_has_the_same_number_of_facts() -> None:
    assert {len(facts(language)) for language in LANGUAGES} == {20}
    assert all(fact.text and fact.question for language in LANGUAGES for fact in facts(language))


async def test_words_alone_find_facts_by_other_forms_of_their_words() -> None:
    found = await recall(PlainEmbedder(HashingEncoder()), 64, tuning=ROWS["bm25"], bm25=Bm25())

    assert {language: share for language, share in found.items() if share < 85} == {}


def test_every_language_is_within_ten_points_of_english(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    main([])

    found = orjson.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["model"] == DEFAULT_MODEL
    assert found["search"]["en"] >= 90
    assert found["goals"] == {"points_behind_english": "met"}
