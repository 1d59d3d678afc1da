"""Strict, lenient and RULER's scores, and their intervals."""

from dataclasses import replace

import pytest

from evaluation.ruler.records import Record
from evaluation.ruler.report import table
from evaluation.ruler.scores import bootstrap, kind_rows_of, rows_of, scores_of

RIGHT = Record("hqa", 50, 0, "d", 0, ("The Night",), "e", answer="The Night", raw=r"So: \boxed{The Night}")


def failed(record: Record) -> Record:
    """The same record of a read that failed."""
    return replace(record, answer="", raw=None, error="Timeout: too late")


def test_the_strict_score_counts_punctuation_and_articles_the_lenient_do_not() -> None:
    said = replace(RIGHT, answer="night!", raw=r"\boxed{night!}")
    assert scores_of(said) == {
        "published": 1.0,
        "published_plain": 0.0,
        "strict": 0.0,
        "em": 1.0,
        "f1": 1.0,
        "sub_em": 1.0,
    }


def test_a_longer_answer_is_contained_but_not_exact() -> None:
    said = replace(RIGHT, answer="the night train", raw=r"\boxed{the night train}")
    assert scores_of(said) == {
        "published": 1.0,
        "published_plain": 0.0,
        "strict": 0.0,
        "em": 0.0,
        "f1": pytest.approx(2 / 3),
        "sub_em": 1.0,
    }


def test_rulers_own_tasks_count_the_references_in_the_answer() -> None:
    said = replace(RIGHT, task="vt", golds=("ABC", "XYZ"), answer="it is abc", raw=r"\boxed{it is abc}")
    assert scores_of(said) == {"published": 0.5, "published_plain": 0.0, "references": 0.5}


@pytest.mark.parametrize(
    ("task", "reply", "golds", "score"),
    [
        pytest.param("hqa", r"\boxed{Anna}", ("Anna Ek",), 1.0, id="a-part-of-the-gold-answer-is-right"),
        pytest.param("hqa", r"\boxed{the man Anna Ek}", ("Anna Ek",), 1.0, id="more-than-the-gold-answer-is-right"),
        pytest.param("hqa", r"\boxed{Lima}", ("Rome", "Lima"), 0.0, id="only-the-first-gold-answer-counts"),
        pytest.param("hqa", "It is Anna Ek.", ("Anna Ek",), 0.0, id="without-a-box-wrong"),
        pytest.param("hqa", r"\boxed{The}", ("The Night",), 0.0, id="an-article-alone-is-no-answer"),
        pytest.param("qa_1", r"\boxed{ANNA}", ("Anna Ek",), 1.0, id="questions-of-ruler-are-scored-alike"),
        pytest.param("vt", r"ABC and \boxed{XYZ}", ("ABC", "XYZ"), 0.5, id="references-outside-the-box-do-not-count"),
        pytest.param("vt", "ABC, XYZ", ("ABC", "XYZ"), 0.0, id="references-without-a-box-do-not-count"),
        pytest.param("2wiki", r"\boxed{?} It was anna ek", ("Lima", "Anna Ek"), 1.0, id="2wiki-reads-on-after-the-box"),
        pytest.param("2wiki", r"Anna Ek: \boxed{Lima}", ("Anna Ek",), 0.0, id="2wiki-ignores-what-precedes-the-box"),
        pytest.param("2wiki", "Anna Ek", ("Anna Ek",), 1.0, id="2wiki-takes-a-reply-without-a-box"),
        pytest.param("global_reasoning", r"\boxed{12}", ("2", "9"), 1.0, id="counts-are-found-as-letters"),
        pytest.param("global_reasoning", r"\boxed{two}", ("Two",), 0.0, id="counts-keep-their-case"),
    ],
)
def test_the_published_score_is_that_of_the_papers_own_code(
    task: str, reply: str, golds: tuple[str, ...], score: float
) -> None:
    assert scores_of(replace(RIGHT, task=task, golds=golds, answer="", raw=reply))["published"] == score


@pytest.mark.parametrize(
    ("task", "reply", "golds", "score"),
    [
        pytest.param("hqa", "Therefore, the answer is Anna Ek.", ("Anna Ek",), 1.0, id="after-the-phrase"),
        pytest.param("hqa", "So **the answer is** *Anna*.", ("Anna Ek",), 1.0, id="asterisks-are-dropped"),
        pytest.param("hqa", "the answer is Lima. No, the answer is Rome", ("Lima",), 0.0, id="the-last-one-counts"),
        pytest.param("hqa", "The Answer Is Lima", ("Lima",), 0.0, id="the-phrase-keeps-its-case"),
        pytest.param("hqa", r"\boxed{Lima}", ("Lima",), 0.0, id="a-box-alone-does-not-count"),
        pytest.param(
            "hqa", "<think>the answer is Rome</think>It is Lima", ("Rome",), 0.0, id="thinking-does-not-count"
        ),
        pytest.param("hqa", "<think>the answer is Rome</think>", ("Rome",), 1.0, id="unless-nothing-follows-it"),
        pytest.param("vt", "the answer is ABC", ("ABC", "XYZ"), 0.5, id="references"),
    ],
)
def test_memagents_tables_score_what_follows_the_answer_is(
    task: str, reply: str, golds: tuple[str, ...], score: float
) -> None:
    assert scores_of(replace(RIGHT, task=task, golds=golds, answer="", raw=reply))["published_plain"] == score


def test_rulers_question_answering_is_scored_as_such() -> None:
    assert scores_of(replace(RIGHT, task="qa_1"))["strict"] == 1.0


def test_a_failed_read_scores_nothing_and_stays_in_the_denominator() -> None:
    (row,) = rows_of([RIGHT, failed(replace(RIGHT, index=1))], seed=0)
    assert (row.items, row.failed) == (2, 1)
    means = {name: score.mean for name, score in row.scores.items()}
    assert means == {**dict.fromkeys(("published", "strict", "em", "f1", "sub_em"), 0.5), "published_plain": 0.0}


def test_no_score_of_the_box_is_made_up_where_the_box_is_not_known() -> None:
    through_gateway = replace(RIGHT, raw=None)
    (row,) = rows_of([through_gateway, failed(replace(RIGHT, index=1))], seed=0)
    assert set(row.scores) == {"em", "f1", "sub_em"}
    assert "| – | – | – | 50.0 [0.0, 100.0] |" in table([row])


def test_the_best_seed_is_the_one_with_the_highest_mean_over_items() -> None:
    right, wrong = "\\boxed{x}", "\\boxed{y}"
    seeds = {1: (right, wrong, right), 2: (wrong, wrong, right)}
    records = [
        Record("hqa", 50, index, "d", seed, ("x",), "e", answer=reply[-2], raw=reply)
        for seed, replies in seeds.items()
        for index, reply in enumerate(replies)
    ]
    (row,) = rows_of(records, seed=0)
    assert row.best["published"] == pytest.approx(2 / 3)
    assert row.scores["published"].mean == pytest.approx(0.5)


def test_seeds_of_an_item_are_one_item() -> None:
    reads = [replace(RIGHT, seed=1), failed(replace(RIGHT, seed=2))]
    (row,) = rows_of(reads, seed=0)
    score = row.scores["em"]
    assert (row.items, row.reads) == (1, 2)
    assert (score.low, score.mean, score.high) == (0.5, 0.5, 0.5)


def test_the_interval_is_that_of_the_binomial() -> None:
    score = bootstrap([1.0] * 80 + [0.0] * 20, seed=1)
    assert score.mean == pytest.approx(0.8)
    assert (score.low, score.high) == (pytest.approx(0.72, abs=0.02), pytest.approx(0.88, abs=0.02))


def test_sizes_come_in_order() -> None:
    rows = rows_of([replace(RIGHT, size=size) for size in (100, 50)], seed=0)
    assert [row.size for row in rows] == [50, 100]


def test_kinds_of_questions_have_rows_of_their_own_beside_the_whole() -> None:
    hard, easy = replace(RIGHT, task="2wiki", kind="hard, bridge"), replace(RIGHT, task="2wiki", index=1, kind="easy")
    records = [hard, failed(easy)]
    (whole,) = rows_of(records, seed=0)
    assert (whole.kind, whole.items, whole.scores["sub_em"].mean) == ("", 2, 0.5)
    assert {row.kind: row.scores["sub_em"].mean for row in kind_rows_of(records, seed=0)} == {
        "easy": 0.0,
        "hard, bridge": 1.0,
    }


def test_data_without_kinds_has_no_rows_by_kind() -> None:
    assert kind_rows_of([RIGHT], seed=0) == []
