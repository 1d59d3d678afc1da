"""HaluMem's figures against values worked out by hand, by the formulas of its evaluation code (arXiv 2511.03506)."""

import pytest

from evaluation.memory.point_scores import PointScore, point_score
from evaluation.memory.records import Checked, Graded

POINTS = [
    Graded("ours", "c", "1", "1", 1.0, "full", type="event"),
    Graded("ours", "c", "1", "2", 0.5, "half", type="event"),
    Graded("ours", "c", "1", "3", 0.5, "missed", type="persona"),
    Graded("ours", "c", "1", "4", 0.5, "full", type="persona", is_update=True),
    Graded("ours", "c", "2", "5", 1.0, type="event", is_update=True, update="correct"),
    Graded("ours", "c", "2", "6", 1.0, type="event", is_update=True, update="wrong"),
    Graded("ours", "c", "2", "7", 1.0, type="relationship", is_update=True, update="missed"),
    Graded("ours", "c", "2", "8", 1.0, "missed", type="event", interferes=True),
    Graded("ours", "c", "2", "9", 1.0, "half", type="event", interferes=True),
]
MEMORIES = [
    Checked("ours", "c", "1", 0, "full target"),
    Checked("ours", "c", "1", 1, "half target"),
    Checked("ours", "c", "1", 2, "missed target"),
    Checked("ours", "c", "1", 3, "full target"),
    Checked("ours", "c", "2", 0, "full other"),
    Checked("ours", "c", "2", 1, error="Timeout: too late"),
]


@pytest.fixture(name="scored")
def _scored() -> PointScore:
    scored = point_score(POINTS, MEMORIES)
    assert scored is not None
    return scored


def test_recall_counts_full_matches_and_leaves_out_updates_and_distractors(scored: PointScore) -> None:
    assert (scored.points, scored.recall, scored.omission) == (4, 2 / 4, 1 / 4)


def test_weighted_recall_gives_half_for_half(scored: PointScore) -> None:
    assert scored.weighted_recall == pytest.approx((1.0 + 0.25 + 0.5) / 2.5)


def test_target_precision_is_of_memories_about_a_point(scored: PointScore) -> None:
    assert (scored.targets, scored.target_precision) == (4, (1 + 0.5 + 0 + 1) / 4)


def test_accuracy_is_of_all_memories_and_an_unjudged_one_earns_nothing(scored: PointScore) -> None:
    assert (scored.memories, scored.accuracy, scored.failed) == (6, pytest.approx(3.5 / 6), 1)


def test_f1_is_of_recall_and_target_precision(scored: PointScore) -> None:
    assert scored.f1 == pytest.approx(2 * 0.5 * 0.625 / (0.5 + 0.625))


def test_the_published_f1_follows_from_the_published_recall_and_precision() -> None:
    """MemOS on HaluMem-Medium: recall 74.07, target precision 86.25, F1 79.70."""
    points = [Graded("ours", "c", "1", str(n), 1.0, "full" if n < 7407 else "missed") for n in range(10_000)]
    memories = [Checked("ours", "c", "1", n, "full target" if n < 8625 else "missed target") for n in range(10_000)]
    scored = point_score(points, memories)
    assert scored is not None
    assert round(100 * scored.f1, 2) == 79.70


def test_resistance_is_the_share_of_distractors_of_which_nothing_was_kept(scored: PointScore) -> None:
    assert (scored.distractors, scored.resistance) == (2, 1 / 2)


def test_updates_are_correct_wrong_or_omitted(scored: PointScore) -> None:
    assert scored.updates == 3
    assert (scored.update_correct, scored.update_wrong, scored.update_omission) == (1 / 3, 1 / 3, 1 / 3)


@pytest.mark.parametrize("error", [None, "Timeout: too late"], ids=["unreadable", "failed"])
def test_an_update_without_a_verdict_stays_an_update_and_is_no_missed_extraction(error: str | None) -> None:
    unjudged = Graded("ours", "c", "2", "10", 1.0, type="event", is_update=True, as_update=True, error=error)
    scored = point_score([*POINTS, unjudged], MEMORIES)
    assert scored is not None
    assert (scored.points, scored.recall, scored.omission) == (4, 2 / 4, 1 / 4)
    assert (scored.updates, scored.update_correct, scored.update_omission) == (4, 1 / 4, 1 / 4)


def test_a_change_of_which_the_memory_holds_nothing_is_a_missed_extraction() -> None:
    scored = point_score([*POINTS, Graded("ours", "c", "2", "10", 1.0, "missed", is_update=True)], MEMORIES)
    assert scored is not None
    assert (scored.points, scored.omission, scored.updates) == (5, 2 / 5, 3)


def test_types_count_points_and_updates_without_distractors(scored: PointScore) -> None:
    assert scored.by_type == {"event": 2 / 4, "persona": 1 / 2, "relationship": 0.0}


def test_without_points_there_is_no_score() -> None:
    assert point_score([], MEMORIES) is None
