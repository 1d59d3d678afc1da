"""RULER's score of tasks with several references.

Source: RULER (arXiv 2404.06654), ``string_match_all``, which finds 7 in 17 too; here a reference is whole words.
"""

from collections.abc import Sequence

from memloop.scoring.strict import stands_in


def recall_of_references(prediction: str, references: Sequence[str]) -> float:
    """Return the share of references in the prediction, in any case. Raises ValueError without references."""
    if not references:
        raise ValueError("an item without references has no score")
    answer = prediction.lower()
    return sum(stands_in(reference.lower(), answer) for reference in references) / len(references)
