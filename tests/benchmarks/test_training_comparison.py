"""The arithmetic under ``make bench-training``, by hand, and one read by the shipped model."""

from pathlib import Path

import orjson
import pytest

from benchmarks.comparing import Share, drop, paired_gain
from benchmarks.training.elsewhere import FAMILIES, HAYSTACKS, documents_in, row_of
from benchmarks.training.policies import curve_of
from benchmarks.training.reading import Reading, Scores, documents_of, first_fault, parts_of, read_all
from memloop.ports import Chunk, HeldChunks
from trainer.tiny.documents import Document

TINY = Path("services/inference/models/memloop-tiny")


def test_a_paired_gain_is_the_mean_of_the_differences() -> None:
    """Two of four get better, none worse. The interval has two pairs more: mean 1/3, variance 5/9, of six."""
    gain = paired_gain([False, False, True, False], [True, True, True, False])
    assert gain.points == 50
    assert (gain.low, gain.high) == pytest.approx((33.33 - 59.64, 33.33 + 59.64), abs=0.01)


def test_the_interval_of_a_gain_on_many_documents_excludes_zero() -> None:
    assert paired_gain([False] * 50 + [True] * 50, [True] * 40 + [False] * 10 + [True] * 50).low > 0


def test_a_gain_that_is_as_often_a_loss_is_none() -> None:
    assert paired_gain([True, False], [False, True]).points == 0


def test_a_gain_needs_the_same_documents() -> None:
    with pytest.raises(ValueError, match="zip"):
        paired_gain([True], [True, False])


def test_a_perfect_score_loses_nothing_but_its_interval_shows_the_sample_size() -> None:
    """Wilson's upper bound of 0 wrong in 10 is 27.75 %, and Newcombe's interval has it on both sides."""
    lost = drop([True] * 10, [True] * 10)
    assert (lost.points, lost.low, lost.high) == (0, -27.75, 27.75)


def test_a_share_without_documents_is_unknown() -> None:
    share = Share.of([])
    assert (share.percent, share.low, share.high) == (0, 0, 100)


def test_a_curve_has_the_steps_of_its_figure(tmp_path: Path) -> None:
    steps: list[dict[str, object]] = [{"step": 0, "data": {"acc": 0.75}}, {"step": 1, "data": {"memloop/reward": 0.5}}]
    log = tmp_path / "run.jsonl"
    log.write_bytes(b"".join(orjson.dumps(step) + b"\n" for step in steps))
    assert curve_of(log, "acc") == ((0, 0.75),)


def test_the_shipped_model_reads_documents_side_by_side_in_this_process() -> None:
    scores = read_all(TINY, documents_of(times=1, count=4, seed=0))
    assert all(each.strict and each.lenient for each in scores)


def test_documents_of_a_seed_are_the_same_and_differ_between_lengths() -> None:
    first, again = (documents_of(times=2, count=2, seed=5) for _ in range(2))
    assert [document.question for document in first] == [document.question for document in again]
    assert len(list(first[0].chunks)) == 8


def test_a_wrong_answer_is_traced_to_the_first_turn_that_went_wrong() -> None:
    told, others = "The locker code of Marta is 482.", "The locker code of Bruno is 117."
    chunks = HeldChunks(
        Chunk(index=index, start=0, end=len(text), text=text, tokens=9)
        for index, text in enumerate((told, others, "Ahead was the sea."))
    )
    document = Document("What is the locker code of Marta?", "482", chunks)
    wrong = "The locker code of Marta is 117."
    assert first_fault(document, ["Nothing.", told, wrong, wrong]) == "took another's"
    assert first_fault(document, ["Nothing.", "Nothing.", wrong, wrong]) == "missed"
    assert first_fault(document, ["Nothing.", told, told, told]) == "answered wrong"


def test_the_parts_of_a_reading_are_its_documents_once_each() -> None:
    reading = Reading("after", TINY, seed=3, times=1, count=7)
    whole = documents_of(times=1, count=7, seed=3)
    shares = [document for part in parts_of([reading]) for document in part.documents]
    assert sorted(each.chunks[0].text for each in shares) == sorted(each.chunks[0].text for each in whole)


def test_questions_of_two_hops_are_answered_by_rereading_and_not_by_one_pass() -> None:
    documents = documents_of(times=1, count=4, seed=0, hops=2)
    once, again = (read_all(TINY, documents, loop=loop) for loop in ("memagent", "memreread"))
    assert sum(each.strict for each in once) < sum(each.strict for each in again)
    assert {each.fault for each in again} == {None}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_facts_stand_in_every_haystack(family: str) -> None:
    made = {name: documents_in(FAMILIES[family], name, times=1, count=3, seed=0) for name in HAYSTACKS}
    questions = {tuple((each.question, each.answer) for each in documents) for documents in made.values()}
    assert len(questions) == 1
    texts = {
        name: "".join(chunk.text for each in documents for chunk in each.chunks) for name, documents in made.items()
    }
    assert len(set(texts.values())) == len(HAYSTACKS)
    assert [("The tide comes in" in texts[name]) for name in HAYSTACKS] == [name == "repeated" for name in HAYSTACKS]


def test_both_policies_answers_to_a_cell_are_compared_document_by_document() -> None:
    right, wrong = Scores(True, True), Scores(False, False)
    row = row_of("niah_single", "novel", [right, wrong, wrong, wrong], [right, right, right, wrong])
    assert (row["documents"], row["before"], row["after"], row["gain"]) == (4, 25.0, 75.0, 50.0)
    assert row["low"] < 50.0 < row["high"]
