"""The lenient scores of question answering: exact match, token F1 and containment, each the best over all gold answers.

Text is lowered, and loses its punctuation, articles and double spaces. An empty prediction scores 0. Source: the SQuAD
v1.1 and HotpotQA evaluation scripts' conventions, but where these are fooled: containment is by whole words, numbers
keep their sign and decimal mark, and a letter before no word, such as the option ``A``, is no article.

The scores of memories are made of them.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from memloop.scoring.strict import stands_in

_ARTICLES = re.compile(r"\b(?:a|an|the)\s+(?=[\"'“‘(\[]*\w)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_PUNCTUATION = re.compile(rf"(?!(?<=\d)[.,]\d|(?<!\w)-\d)[{re.escape(string.punctuation)}]")
"""Any but a decimal mark and a sign."""
_CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})


def exact_match(prediction: str, golds: Iterable[str]) -> float:
    """1.0 when the normal forms are equal."""
    return _best(prediction, golds, lambda mine, gold: float(mine == gold))


def contains(prediction: str, golds: Iterable[str]) -> float:
    """1.0 when the prediction contains the words of a gold answer (``sub_em``), also between hyphens."""
    joined, apart = normalise(prediction), normalise(prediction, between=" ")
    found = (stands_in(normalise(gold), joined) or stands_in(normalise(gold, between=" "), apart) for gold in golds)
    return float(any(found))


def token_f1(prediction: str, golds: Iterable[str]) -> float:
    """Harmonic mean of token precision and recall; yes and no must match whole."""
    return _best(prediction, golds, _f1)


def normalise(text: str, *, between: str = "") -> str:
    """Return the normal form that the lenient scores compare; ``between`` takes the place of punctuation."""
    plain = _THOUSANDS.sub("", _ARTICLES.sub(" ", text.lower().replace("−", "-")))
    return " ".join(_PUNCTUATION.sub(between, plain).split())


def _best(prediction: str, golds: Iterable[str], score: Callable[[str, str], float]) -> float:
    mine = normalise(prediction)
    return max((score(mine, normalise(gold)) for gold in golds), default=0.0) if mine else 0.0


def _f1(mine: str, gold: str) -> float:
    if mine != gold and (mine in _CLOSED_ANSWERS or gold in _CLOSED_ANSWERS):
        return 0.0
    mine_tokens, gold_tokens = mine.split(), gold.split()
    shared = sum((Counter(mine_tokens) & Counter(gold_tokens)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(mine_tokens), shared / len(gold_tokens)
    return 2 * precision * recall / (precision + recall)


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
