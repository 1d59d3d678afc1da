import pytest
from hypothesis import given
from hypothesis import strategies as st

from memloop.loops.memreread import was_asked
from memloop.scoring.comparison import percentile
from memloop.scoring.lenient import (
    contains,
    evidence_recall,
    exact_match,
    extraction_recall,
    normalise,
    token_f1,
    weighted_extraction_recall,
    word_recall,
)
from memloop.scoring.strict import published_contains, recall_of_references, strict_contains, strict_score


@pytest.mark.parametrize(
    ("count", "percent", "rank"),
    [(20, 95, 19), (2, 50, 1), (100, 95, 95), (100, 99, 99), (3, 50, 2), (1, 95, 1), (10, 0, 1), (10, 100, 10)],
)
def test_a_percentile_is_the_least_value_that_so_many_percent_reach(count: int, percent: float, rank: int) -> None:
    values = list(range(count, 0, -1))
    assert percentile(values, percent) == rank
    assert 100 * sum(value <= rank for value in values) / count >= percent


@pytest.mark.parametrize(
    ("reply", "golds", "score"),
    [
        (r"So \boxed{Lima}.", ["Lima"], 1.0),
        (r"\boxed{Lima}", ["Rome", "Lima"], 1.0),
        ("\\boxed{New\nYork}", ["New  York"], 1.0),
        (r"\boxed{\text{New York}}", ["New York"], 0.0),
        (r"\boxed{$5}", ["5"], 0.0),
        (r"\boxed{\$5}", ["5"], 1.0),
        (r"\boxed{90^\circ}", ["90"], 1.0),
        (r"\boxed{\dfrac{.5}{2}}", [r"\frac{0.5}{2}"], 1.0),
        (r"\boxed{50\%}", ["50"], 1.0),
        (r"\boxed{50%}", ["50"], 0.0),
        (r"\boxed{50%}", ["50%"], 1.0),
        (r"$\fbox{x}$", ["x"], 1.0),
        (r"\boxed{the Lima}", ["Lima"], 0.0),
        (r"\boxed{Lima.}", ["Lima"], 0.0),
        (r"\boxed{lima}", ["LIMA"], 1.0),
        (r"\boxed{Lima} \boxed{Rome}", ["Lima"], 0.0),
        ("Lima", ["Lima"], 0.0),
        (r"\boxed{}", [""], 0.0),
        (r"\boxed{Lima", ["Lima"], 0.0),
        ("", ["Lima"], 0.0),
        (r"\boxed{Lima}", [], 0.0),
    ],
)
def test_strict(reply: str, golds: list[str], score: float) -> None:
    assert strict_score(reply, golds) == score


@pytest.mark.parametrize(
    ("reply", "golds", "score"),
    [
        (r"\boxed{the city of lima, Peru}", ["Rome", "Lima"], 1.0),
        (r"\boxed{\text{New York}}", ["New York"], 1.0),
        (r"\boxed{New}", ["New York"], 0.0),
        ("It is Lima.", ["Lima"], 0.0),
        (r"\boxed{anything}", [""], 0.0),
        (r"\boxed{}", ["Lima"], 0.0),
    ],
)
def test_the_box_may_hold_more_than_a_gold_answer_where_it_need_only_contain_it(
    reply: str, golds: list[str], score: float
) -> None:
    assert strict_contains(reply, golds) == score


@pytest.mark.parametrize(
    ("reply", "gold", "published"),
    [
        (r"\boxed{unknown}", "no", 1.0),
        (r"\boxed{1990s}", "1990", 1.0),
        (r"\boxed{I do not know.}", "no", 1.0),
        (r"\boxed{not here}", "other", 1.0),
    ],
)
def test_a_box_contains_whole_words_but_as_published_also_letters(reply: str, gold: str, published: float) -> None:
    assert strict_contains(reply, [gold]) == 0.0
    assert published_contains(reply, [gold]) == published


def test_strict_looks_only_at_the_end() -> None:
    late = r"\boxed{Lima}" + "x" * 300
    assert strict_score(late, ["Lima"]) == strict_contains(late, ["Lima"]) == 0.0


def test_the_normal_form_drops_case_punctuation_articles_and_space() -> None:
    assert normalise("  The U.S.A.,  an  Answer! ") == "usa answer"


@pytest.mark.parametrize(
    ("prediction", "golds", "em", "sub_em", "f1"),
    [
        ("The Lima.", ["lima"], 1.0, 1.0, 1.0),
        ("It is Lima", ["Rome", "Lima"], 0.0, 1.0, 0.5),
        ("Rome", ["Lima"], 0.0, 0.0, 0.0),
        ("", ["Lima"], 0.0, 0.0, 0.0),
        ("the", ["the"], 1.0, 1.0, 1.0),
        ("yes indeed", ["yes"], 0.0, 1.0, 0.0),
        ("no", ["no"], 1.0, 1.0, 1.0),
        ("a b b", ["b b c"], 0.0, 0.0, 0.8),
        ("anything", [""], 0.0, 0.0, 0.0),
        ("anything", [], 0.0, 0.0, 0.0),
        ("I do not know.", ["no"], 0.0, 0.0, 0.0),
        ("the answer is A", ["A"], 0.0, 1.0, 0.5),
        ("A", ["A"], 1.0, 1.0, 1.0),
        ("A dog", ["A"], 0.0, 0.0, 0.0),
        ("1.5", ["15"], 0.0, 0.0, 0.0),
        ("15 percent", ["1.5 percent"], 0.0, 0.0, 0.5),
        ("it is 7.5", ["7"], 0.0, 0.0, 0.0),
        ("-7", ["7"], 0.0, 0.0, 0.0),
        ("1,200 people", ["1200"], 0.0, 1.0, 2 / 3),
        ("from 1990-2000", ["1990"], 0.0, 1.0, 0.0),
        ("New York-based", ["New York"], 0.0, 1.0, 0.5),
        ("the U.S.A.", ["USA"], 1.0, 1.0, 1.0),
        ("答えは東京です", ["東京"], 0.0, 1.0, 0.0),
        ("서울은", ["서울"], 0.0, 1.0, 0.0),
    ],
)
def test_lenient(prediction: str, golds: list[str], em: float, sub_em: float, f1: float) -> None:
    assert exact_match(prediction, golds) == em
    assert contains(prediction, golds) == sub_em
    assert token_f1(prediction, golds) == pytest.approx(f1)


def test_ruler_is_the_share_of_references_found() -> None:
    assert recall_of_references("ONE and three", ["one", "two", "Three", "four"]) == 0.5


def test_ruler_finds_no_number_within_another() -> None:
    assert recall_of_references("17 and 2", ["7", "2"]) == 0.5


@given(st.text("abc xyz", min_size=1).filter(str.strip), st.text("abc", min_size=1), st.text("xyz", min_size=1))
def test_a_text_contains_its_words_and_no_piece_of_them(text: str, word: str, more: str) -> None:
    assert contains(f"{text} so {word} {text}", [word]) == 1.0 or word == "a"
    assert contains(f"so {word}{more}", [word]) == 0.0


def test_ruler_without_references_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="references"):
        recall_of_references("x", [])


def test_word_recall_takes_the_best_gold_answer() -> None:
    assert word_recall("Ann moved to New Jersey.", ["New York", "Boston"]) == 0.5
    assert word_recall("anything", []) == 0.0


def test_evidence_recall_counts_the_first_k() -> None:
    assert evidence_recall(["a", "b", "c"], {"c", "a"}, k=2) == 0.5
    assert evidence_recall(["a", "b", "c"], {"c", "a"}) == 1.0


def test_extraction_counts_full_matches_and_weighs_half_ones() -> None:
    assert extraction_recall([2, 1, 0, 2]) == 0.5
    assert weighted_extraction_recall([2, 1, 0], [1.0, 2.0, 1.0]) == 0.5
    assert extraction_recall([]) == weighted_extraction_recall([], []) == 0.0


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("where  was She born", True),
        ("«Where was she born»!", True),
        ("When was she born?", False),
        ("born she", False),
    ],
)
def test_a_question_was_asked_when_its_words_were(question: str, asked: bool) -> None:
    assert was_asked(question, ["Who is Ann?", "Where was she born?"]) is asked
