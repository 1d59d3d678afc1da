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


def test_the_strict_score_wants_the_box_and_every_letter_the_lenient_do_not() -> None:
    said = replace(RIGHT, answer="night!", raw=r"\boxed{night!}")
    assert scores_of(said) == {"strict": 0.0, "em": 1.0, "f1": 1.0, "sub_em": 1.0}


def test_a_longer_answer_is_contained_but_not_exact() -> None:
    said = replace(RIGHT, answer="the night train", raw="the night train")
    assert scores_of(said) == {"strict": 0.0, "em": 0.0, "f1": pytest.approx(2 / 3), "sub_em": 1.0}


def test_rulers_own_tasks_count_the_references_in_the_answer() -> None:
    said = replace(RIGHT, task="vt", golds=("ABC", "XYZ"), answer="it is abc")
    assert scores_of(said) == {"references": 0.5}


def test_rulers_question_answering_is_scored_as_such() -> None:
    assert scores_of(replace(RIGHT, task="qa_1"))["strict"] == 1.0


def test_a_failed_read_scores_nothing_and_stays_in_the_denominator() -> None:
    (row,) = rows_of([RIGHT, failed(replace(RIGHT, index=1))], seed=0)
    assert (row.items, row.failed) == (2, 1)
    assert {name: score.mean for name, score in row.scores.items()} == dict.fromkeys(
        ("strict", "em", "f1", "sub_em"), 0.5
    )


def test_no_strict_score_is_made_up_where_the_box_is_not_known() -> None:
    through_gateway = replace(RIGHT, raw=None)
    (row,) = rows_of([through_gateway, failed(replace(RIGHT, index=1))], seed=0)
    assert set(row.scores) == {"em", "f1", "sub_em"}
    assert "| – | 50.0 [0.0, 100.0] |" in table([row])


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
