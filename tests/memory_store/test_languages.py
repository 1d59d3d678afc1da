"""Terms of BM25 by language: Snowball's stemmers, pairs of characters, and English as it was."""

import itertools
import re
from collections.abc import Callable
from typing import cast

import pytest
import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]
from hypothesis import given
from hypothesis import strategies as st

from evaluation.retrieval.conversations import conversation
from memory_store.embedding.encoding import Bm25, language_of, language_of_script, stemmer

_BM25 = Bm25()
_FUNCTION_WORDS = """
a an and are as at be been but by did do does for from had has have he her his how i if in into is it its me my of on or
our she so that the their them then there these they this to was we were what when where which who why will with would
you your
"""
_ENGLISH_FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wo steht das Fahrrad von Anna?", "german"),
        ("¿Dónde está el coche de mi hermana?", "spanish"),
        ("Quel est le nom de mon chien ?", "french"),
        ("Dove abita la sorella di Marco?", "italian"),
        ("Onde mora a minha irmã?", "portuguese"),
        ("Waar woont mijn zus?", "dutch"),
        ("Var bor min syster och vad heter hon?", "swedish"),
        ("Gdzie mieszka moja siostra?", "polish"),
        ("Kız kardeşim nerede ve ne zaman gelecek?", "turkish"),
        ("Missä minun siskoni on?", "finnish"),
    ],
)
def test_a_question_gives_its_language_away(text: str, language: str) -> None:
    assert language_of(words(text)) == language


@pytest.mark.parametrize(
    "text",
    [
        "I flew to Los Angeles and Las Vegas.",
        "Los Angeles trip",
        "Die another day",
        "Vincent van Gogh is in the Louvre.",
        "She said c'est la vie to me when I asked about the café.",
        "boat colour",
        "https://pictures.example.com/com.example/img-2.jpg",
        "Ha ha, Dan met Mia!",
        "",
    ],
)
def test_english_stays_english_with_foreign_names_in_it(text: str) -> None:
    assert language_of(words(text)) is None


def test_english_conversations_have_the_terms_that_they_always_had() -> None:
    stem = stemmer("english")
    talk = conversation(7)
    for text in (*(turn.text for turn in talk.turns), *(question.text for question in talk.questions)):
        assert _BM25.terms(text) == [stem(word) for word in words(text) if word not in _ENGLISH_FUNCTION_WORDS]


@pytest.mark.parametrize(
    ("fact", "question"),
    [
        ("Die Bäume auf der Wiese sind alt.", "Wo ist der Baum?"),
        ("Мой отец чинит старые часы.", "Какие часы чинил отец?"),
        ("Los niños recogieron conchas en la playa.", "¿Qué recoge el niño en las playas?"),
        ("아버지는 시계를 고칩니다.", "시계가 어디 있나요?"),
        ("猫が好きです。", "猫"),
        ("Η γάτα της Άννας λέγεται Μίλα.", "Πώς λένε τις γάτες;"),
    ],
)
def test_a_question_shares_a_term_with_other_forms_of_its_words(fact: str, question: str) -> None:
    assert set(_BM25.document(fact).indices) & set(_BM25.query(question).indices)


@pytest.mark.parametrize(
    "text", ["Die Häuser sind alt und sie haben Gärten", "Дома старые", "猫が好きです", "고양이가 좋아요"]
)
def test_a_question_still_has_the_terms_that_earlier_versions_stored(text: str) -> None:
    stem = stemmer("english")
    stored = {stem(word) for word in words(text)} - {"die", "sind", "und", "sie", "haben"}
    if text == "猫が好きです":
        stored = {"".join(pair) for pair in itertools.pairwise(text)}

    assert stored <= set(_BM25.terms(text))


@pytest.mark.parametrize("language", snowballstemmer.algorithms())
def test_a_number_is_its_own_term_as_the_stemmer_itself_has_it(language: str) -> None:
    plain = cast("Callable[[str], str]", snowballstemmer.stemmer(language).stemWord)  # pyright: ignore[reportUnknownMemberType]

    for number in ("7", "2025", "10000042", "\u0664\u0662", "\uff14\uff12", "\u096a\u0968"):
        assert stemmer(language)(number) == plain(number)


def test_function_words_of_the_language_are_not_searched_for_but_negations_are() -> None:
    assert _BM25.terms("Das ist nicht das Haus von der Anna") == ["nicht", "haus", "anna"]


def test_a_second_term_of_a_word_does_not_make_a_text_longer() -> None:
    plain, stemmed = _BM25.document("haus"), _BM25.document("häusern")

    assert max(plain.values) == pytest.approx(max(stemmed.values))


@given(st.text(max_size=8))
def test_a_word_of_any_script_has_at_most_one_language(word: str) -> None:
    assert language_of_script(word) is None or not word.isascii()
