"""HaluMem's figures of extraction and update, from graded points and checked memories.

Source: Chen et al., "HaluMem: Evaluating Hallucinations in Memory Systems of Agents" (arXiv 2511.03506) and its
evaluation code: an update of which the memory holds something counts as an update alone; F1 is of recall and target
precision. What could not be judged earns nothing and stays in the count of its kind.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, harmonic_mean

from evaluation.memory.records import Checked, Graded
from memloop.scoring.lenient import extraction_recall, weighted_extraction_recall

_POINTS = {"full": 2, "half": 1}


@dataclass(frozen=True, slots=True)
class PointScore:
    """Shares from 0 to 1, each beside the number of points or memories that it is a share of.

    * ``recall``: points extracted in full; ``weighted_recall``: by importance, half matches count half;
    * ``target_precision``: how far the session bears out the memories that are about an expected point;
    * ``accuracy``: the same of all extracted memories;
    * ``resistance``: distractors (interference) of which nothing was remembered;
    * ``by_type``: points extracted in full or updated correctly.
    """

    points: int
    recall: float
    weighted_recall: float
    omission: float
    targets: int
    target_precision: float
    memories: int
    accuracy: float
    f1: float
    distractors: int
    resistance: float
    updates: int
    update_correct: float
    update_wrong: float
    update_omission: float
    by_type: Mapping[str, float]
    failed: int
    judgements: int


def point_score(graded: Sequence[Graded], checked: Sequence[Checked]) -> PointScore | None:
    """Score the memory points and the extracted memories; None without any point."""
    if not graded:
        return None
    distractors = [point for point in graded if point.interferes]
    updates = [point for point in graded if point.counts_as_update and not point.interferes]
    points = [point for point in graded if not point.counts_as_update and not point.interferes]
    grades = [_POINTS.get(point.grade or "", 0) for point in points]
    targets = [memory for memory in checked if memory.check is not None and memory.check.endswith("target")]
    recall, precision = extraction_recall(grades), _mean(map(_support, targets))
    return PointScore(
        points=len(points),
        recall=recall,
        weighted_recall=weighted_extraction_recall(grades, [point.importance for point in points]),
        omission=_mean(grade == 0 for grade in grades),
        targets=len(targets),
        target_precision=precision,
        memories=len(checked),
        accuracy=_mean(map(_support, checked)),
        f1=harmonic_mean([recall, precision]),
        distractors=len(distractors),
        resistance=_mean(point.grade == "missed" for point in distractors),
        updates=len(updates),
        update_correct=_mean(point.update == "correct" for point in updates),
        update_wrong=_mean(point.update == "wrong" for point in updates),
        update_omission=_mean(point.update == "missed" for point in updates),
        by_type=_by_type([*points, *updates]),
        failed=sum(entry.error is not None for entry in (*graded, *checked)),
        judgements=sum(entry.judge_tokens.total > 0 for entry in (*graded, *checked)),
    )


def _support(memory: Checked) -> float:
    """Return how far the session bears the memory out: 1, 0.5 or 0."""
    return _POINTS.get((memory.check or "").partition(" ")[0], 0) / 2


def _by_type(points: Sequence[Graded]) -> Mapping[str, float]:
    types = sorted({point.type for point in points if point.type})
    return {name: _mean(_holds(point) for point in points if point.type == name) for name in types}


def _holds(point: Graded) -> bool:
    return point.grade == "full" or point.update == "correct"


def _mean(values: Iterable[float]) -> float:
    held = list(values)
    return fmean(held) if held else 0.0
