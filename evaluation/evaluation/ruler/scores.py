"""Scores a run by task and size: as published, strict, lenient and RULER's own, each with a bootstrap interval.

A failed item counts as wrong. An item read with several seeds counts once, with its mean: seeds are not independent
items.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TypeAlias

from evaluation.ruler.items import QUESTION_ANSWERING
from evaluation.ruler.published import published_scores
from evaluation.ruler.records import Record
from memloop.scoring.lenient import contains, exact_match, token_f1
from memloop.scoring.strict import recall_of_references, strict_score

RESAMPLES = 1000
_TAIL = 0.025
_ItemKey: TypeAlias = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean from 0 to 1 with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """One task at one size, all questions or those of one kind.

    ``items`` counts each once, ``reads`` each seed; costs are means over completed reads. ``best``: each score of
    the seed with the highest mean.
    """

    task: str
    size: int
    items: int
    reads: int
    failed: int
    scores: Mapping[str, Estimate]
    calls: float
    tokens: float
    seconds: float
    kind: str = ""
    best: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def headline(self) -> str:
        """Return the plotted score: containment."""
        return "sub_em" if self.task in QUESTION_ANSWERING else "references"


def scores_of(record: Record) -> dict[str, float]:
    """Score one record. A gateway's has neither a published nor a strict score: the box around its answer is lost."""
    answer = "" if record.error is not None else record.answer
    if record.task not in QUESTION_ANSWERING:
        return _of_reply(record) | {"references": recall_of_references(answer, record.golds)}
    return _of_reply(record) | {
        "em": exact_match(answer, record.golds),
        "f1": token_f1(answer, record.golds),
        "sub_em": contains(answer, record.golds),
    }


def _of_reply(record: Record) -> dict[str, float]:
    if record.raw is None and record.error is None:
        return {}
    reply = "" if record.error is not None else record.raw or ""
    published = dict(published_scores(record.task, reply, record.golds))
    if record.task not in QUESTION_ANSWERING:
        return published
    return published | {"strict": strict_score(reply, record.golds)}


def rows_of(records: Iterable[Record], *, seed: int) -> list[Row]:
    """Build one row per task and size, in order."""
    return _rows((replace(record, kind="") for record in records), seed)


def kind_rows_of(records: Iterable[Record], *, seed: int) -> list[Row]:
    """Build one row per task, size and kind of question, in order; none where the data names no kinds."""
    return _rows((record for record in records if record.kind), seed)


def bootstrap(values: Sequence[float], *, seed: int) -> Estimate:
    """Return the mean and its percentile interval over resampled items. Raises ValueError without values."""
    if not values:
        raise ValueError("the mean of no values is undefined")
    rng = random.Random(seed)
    means = sorted(fmean(rng.choices(values, k=len(values))) for _ in range(RESAMPLES))
    cut = round(_TAIL * RESAMPLES)
    return Estimate(fmean(values), means[cut], means[-1 - cut])


def _rows(records: Iterable[Record], seed: int) -> list[Row]:
    groups: dict[tuple[str, int, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[record.task, record.size, record.kind].append(record)
    return [_row(group, seed) for _, group in sorted(groups.items())]


def _row(records: Sequence[Record], seed: int) -> Row:
    by_item: dict[_ItemKey, list[dict[str, float]]] = defaultdict(list)
    by_seed: dict[int, list[dict[str, float]]] = defaultdict(list)
    for record in records:
        found = scores_of(record)
        by_item[record.index, record.digest].append(found)
        by_seed[record.seed].append(found)
    scored = list(by_item.values())
    names = [name for name in scored[0][0] if all(name in scores for reads in scored for scores in reads)]
    ended = [record for record in records if record.error is None]
    return Row(
        task=records[0].task,
        size=records[0].size,
        kind=records[0].kind,
        items=len(scored),
        reads=len(records),
        failed=len(records) - len(ended),
        scores={
            name: bootstrap([fmean(scores[name] for scores in reads) for reads in scored], seed=seed) for name in names
        },
        calls=_mean(record.calls for record in ended),
        tokens=_mean(record.input_tokens + record.output_tokens for record in ended),
        seconds=_mean(record.seconds for record in ended),
        best={name: max(fmean(scores[name] for scores in reads) for reads in by_seed.values()) for name in names},
    )


def _mean(values: Iterable[float]) -> float:
    held = list(values)
    return fmean(held) if held else 0.0
