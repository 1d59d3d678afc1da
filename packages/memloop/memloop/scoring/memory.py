"""Scores of memories: of a reading loop's text, of retrieval, and of extraction."""

from collections.abc import Collection, Sequence

from memloop.scoring.lenient import normalise


def word_recall(memory: str, golds: Sequence[str]) -> float:
    """Return the best share, over the gold answers, of a gold answer's words that the memory holds.

    MemReread's step reward is this for the new memory minus this for the old (arXiv 2605.10268).
    """
    held = set(normalise(memory).split())
    return max((_share(normalise(gold).split(), held) for gold in golds), default=0.0)


def evidence_recall(retrieved: Sequence[str], evidence: Collection[str], *, k: int | None = None) -> float:
    """Return the share of evidence ids among the first ``k`` retrieved ids. Raises ValueError without evidence."""
    if not evidence:
        raise ValueError("a question without evidence has no recall")
    return _share(list(evidence), set(retrieved[:k]))


def extraction_recall(grades: Sequence[int]) -> float:
    """Return the share of gold points that were extracted in full; a grade is 0 missed, 1 half, 2 full (HaluMem)."""
    return sum(grade == 2 for grade in grades) / len(grades) if grades else 0.0


def weighted_extraction_recall(grades: Sequence[int], importances: Sequence[float]) -> float:
    """Half points for half matches, weighted by importance (HaluMem). Raises ValueError on unequal lengths."""
    total = sum(importances)
    earned = sum(grade / 2 * weight for grade, weight in zip(grades, importances, strict=True))
    return earned / total if total else 0.0


def _share(wanted: Sequence[str], held: Collection[str]) -> float:
    return sum(item in held for item in wanted) / len(wanted) if wanted else 0.0
