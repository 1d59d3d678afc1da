"""The scorecard of records whose figures can be worked out by hand, beside the one that is kept."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.memory.point_scores import point_score
from evaluation.memory.records import NO_TOKENS, Answered, Checked, Graded, Ingested, Recalled, Row, Tokens
from evaluation.memory.scorecard import Card, last_line, markdown, save_plot
from evaluation.memory.scores import Prices, recall_score, row_score
from memloop.scoring.comparison import wilson

GOLDEN = Path(__file__).parent / "golden" / "memory_scorecard.md"


def _answers(row: Row) -> list[Answered]:
    tokens, judge = Tokens(100, 10), Tokens(50, 5)
    return [
        Answered(row, "c", "1", 0, ("single",), ("tea",), "tea", "correct", None, tokens, judge, 0.1, 0.9),
        Answered(row, "c", "1", 1, ("single",), ("tea",), "milk", "wrong", None, tokens, judge, 0.1, 1.9),
        Answered(row, "c", "2", 0, ("multi",), ("oak tree",), "oak", None, None, tokens, judge, 0.1, 2.9),
        Answered(row, "c", "3", 0, ("multi",), ("May",), error="EngineError: it is gone"),
    ]


def _card() -> Card:
    ingests = [
        Ingested("ours", "c", "1", 2.5, Tokens(1000, 200), ("m",)),
        Ingested("ours", "c", "2", 1.5, Tokens(500, 100), error="dead letter"),
    ]
    points = [
        Graded("ours", "c", "1", "1", 1.0, "full", type="event"),
        Graded("ours", "c", "1", "2", 0.5, "half", type="persona"),
        Graded("ours", "c", "1", "5", 1.0, is_update=True, update="correct", type="event"),
        Graded("ours", "c", "1", "6", 0.5, is_update=True, update="wrong", type="event"),
        Graded("ours", "c", "1", "7", 1.0, "missed", interferes=True),
        Graded("ours", "c", "2", "3", 0.5, "missed"),
        Graded("ours", "c", "2", "4", 0.0, error="Timeout: too late"),
    ]
    memories = [
        Checked("ours", "c", "1", 0, "full target"),
        Checked("ours", "c", "1", 1, "half target"),
        Checked("ours", "c", "1", 2, "missed other"),
    ]
    found = [
        Recalled("c", "1", ("single",), {"5": 0.0, "10": 1.0}, {"5": 1.0, "10": 1.0}),
        Recalled("c", "2", ("multi",), {"5": 0.5, "10": 0.5}, {"5": 0.5, "10": 1.0}),
    ]
    prices = Prices(10.0, 20.0)
    rows = [row_score("ours", _answers("ours"), ingests, prices), row_score("off", _answers("off"), [], prices)]
    return Card({"format": "halumem", "model": "m"}, rows, recall_score(found), point_score(points, memories))


def test_the_scorecard_is_the_one_that_is_kept() -> None:
    assert markdown(_card()) == GOLDEN.read_text("utf-8")


def test_the_figures_are_those_worked_out_by_hand() -> None:
    found = json.loads(last_line(_card()))
    ours = found["rows"]["ours"]
    assert ours["accuracy"]["share"] == pytest.approx((0.5 + 0 + 0) / 3)
    assert (ours["failed"], ours["unreadable"], ours["failed_sessions"]) == (1, 1, 1)
    assert ours["dollars"] == pytest.approx((1800 * 10 + 330 * 20) / 1e6)
    assert (ours["tokens_per_question"], ours["wrong"], ours["missed"]) == (110.0, pytest.approx(0.5 / 3), 0.0)
    assert (ours["p50_s"], found["rows"]["off"]["ingest"]) == (2.0, {"input": 0, "output": 0})
    points = found["points"]
    assert (points["recall"], points["weighted_recall"], points["omission"]) == (0.25, 0.625, 0.5)
    assert (points["target_precision"], points["accuracy"], points["f1"]) == (0.75, 0.5, 0.375)
    assert (points["update_correct"], points["update_wrong"], points["update_omission"]) == (0.5, 0.5, 0.0)
    assert found["recall"]["turns"] == {"5": 0.25, "10": 0.75}


def test_an_unanswerable_question_counts_in_its_type_and_beside_it_as_published() -> None:
    answers = [
        Answered("ours", "c", "1", 0, ("multi-session",), ("tea",), "tea", "correct"),
        Answered("ours", "c", "2", 0, ("multi-session", "abstention"), ("never told",), "tea", "wrong"),
    ]
    row = row_score("ours", answers, [], Prices())
    shares = {name: (share.share, share.count) for name, share in row.by_category.items()}
    assert shares == {"multi-session": (0.5, 2), "abstention": (0.0, 1)}


def test_the_tokens_of_an_answer_are_spread_over_every_answer_that_came() -> None:
    came = Answered("ours", "c", "1", 0, ("x",), ("tea",), "tea", "correct", tokens=Tokens(100, 10))
    unjudged = replace(came, question="2", verdict=None, error="EngineError: the judge is down")
    lost = replace(unjudged, question="3", answer="", tokens=NO_TOKENS)
    assert row_score("ours", [came, unjudged, lost], [], Prices()).tokens_per_question == 110


def test_the_mean_of_the_categories_counts_each_type_once_and_no_abstention() -> None:
    answers = [
        Answered("ours", "c", "1", 0, ("multi-session",), ("tea",), "tea", "correct"),
        Answered("ours", "c", "2", 0, ("multi-session",), ("tea",), "tea", "correct"),
        Answered("ours", "c", "3", 0, ("multi-session", "abstention"), ("never told",), "tea", "wrong"),
        Answered("ours", "c", "4", 0, ("temporal-reasoning",), ("May",), "June", "wrong"),
    ]
    assert row_score("ours", answers, [], Prices()).task_average == pytest.approx((2 / 3 + 0) / 2)


def test_the_figure_is_the_same_each_time(tmp_path: Path) -> None:
    save_plot(_card(), tmp_path / "one.svg")
    save_plot(_card(), tmp_path / "two.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_an_interval_holds_its_share_and_narrows_with_the_count() -> None:
    assert wilson(0.5, 0) == (0.0, 1.0)
    assert (wilson(0.0, 788)[0], wilson(1.0, 788)[1]) == (0.0, 1.0)
    low, high = wilson(0.5, 100)
    assert (low, high) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson(1.0, 10)[0] == pytest.approx(0.7225, abs=1e-4)
