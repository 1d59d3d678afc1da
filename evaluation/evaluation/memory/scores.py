"""Aggregates the records: one score per row, and retrieval recall."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TypeVar

from evaluation.memory.memos import set_f1
from evaluation.memory.records import NO_TOKENS, Answered, Ingested, Recalled, Row, Tokens, Verdict
from evaluation.memory.rules import ABSTENTION
from memloop.scoring.comparison import percentile, wilson
from memloop.scoring.lenient import token_f1

T = TypeVar("T")
_Record = TypeVar("_Record", Answered, Recalled)


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per million tokens; None if no price was given."""

    input: float | None = None
    output: float | None = None

    def of(self, tokens: Tokens) -> float | None:
        """Return the price of the tokens in dollars."""
        if self.input is None or self.output is None:
            return None
        return (tokens.input * self.input + tokens.output * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class Share:
    """A share from 0 to 1 with its sample size and Wilson's 95 % interval."""

    share: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Share":
        """Average values from 0 to 1."""
        share = fmean(values) if values else 0.0
        return cls(share, *wilson(share, len(values)), len(values))


@dataclass(frozen=True, slots=True)
class RowScore:
    """One row's score. ``failed`` and ``unreadable`` (verdicts) are not correct. Seconds cover search and answer.

    ``wrong`` and ``missed`` are shares of the answers by verdict; only HaluMem's rule tells them apart (hallucinated
    and omitted). ``tokens_per_question`` are the prompt's and reply's of an answer that came. ``set_f1`` and
    ``context_tokens`` (those of the memories shown) are MemOS's figures, None under our protocol.
    """

    row: Row
    accuracy: Share
    wrong: float
    missed: float
    by_category: Mapping[str, Share]
    task_average: float
    """The mean of the categories' accuracies, each category counted once; LongMemEval publishes it for its types."""
    f1: float
    f1_by_category: Mapping[str, float]
    failed: int
    unreadable: int
    failed_sessions: int
    ingest: Tokens
    answers: Tokens
    judge: Tokens
    tokens_per_question: float
    p50_s: float
    p95_s: float
    ingest_s: float
    dollars: float | None
    calls: int = 0
    """Of the writer, for answers, and for their judgements."""
    set_f1: float | None = None
    context_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class RecallScore:
    """Retrieval of raw turns: mean shares of evidence turns and evidence sessions, by k."""

    questions: int
    turns: Mapping[str, float]
    sessions: Mapping[str, float]
    by_category: Mapping[str, float] = field(default_factory=dict[str, float])
    """Turns at 10."""


def row_score(row: Row, answers: Sequence[Answered], ingests: Sequence[Ingested], prices: Prices) -> RowScore:
    """Score one row's records. A question asked with several seeds counts once, with its mean."""
    times = [answer.search_s + answer.answer_s for answer in answers if answer.error is None] or [0.0]
    ingest = sum((each.tokens for each in ingests), NO_TOKENS)
    spent = sum((answer.tokens for answer in answers), NO_TOKENS)
    by_category = {name: _accuracy(own) for name, own in sorted(_by_category(answers).items())}
    contexts = [answer.context_tokens for answer in answers if answer.context_tokens is not None]
    return RowScore(
        row,
        accuracy=_accuracy(answers),
        wrong=_verdicts(answers, "wrong"),
        missed=_verdicts(answers, "missed"),
        by_category=by_category,
        task_average=_task_average(by_category),
        f1=fmean(_by_question(answers, _f1)) if answers else 0.0,
        f1_by_category={name: fmean(_by_question(own, _f1)) for name, own in sorted(_by_category(answers).items())},
        failed=sum(answer.error is not None for answer in answers),
        unreadable=sum(answer.error is None and None in answer.verdicts for answer in answers),
        failed_sessions=sum(each.error is not None for each in ingests),
        ingest=ingest,
        answers=spent,
        judge=sum((answer.judge_tokens for answer in answers), NO_TOKENS),
        tokens_per_question=spent.total / max(1, sum(answer.tokens.total > 0 for answer in answers)),
        p50_s=percentile(times, 50),
        p95_s=percentile(times, 95),
        ingest_s=sum(each.seconds for each in ingests),
        dollars=prices.of(ingest + spent),
        calls=sum(each.calls for each in ingests)
        + sum(1 + len(answer.verdicts) * (answer.judge_tokens.total > 0) for answer in answers if answer.error is None),
        set_f1=fmean(_by_question(answers, _set_f1)) if contexts else None,
        context_tokens=fmean(contexts) if contexts else None,
    )


def recall_score(found: Sequence[Recalled]) -> RecallScore | None:
    """Score the retrieval; None when no question names evidence."""
    if not found:
        return None
    ks = list(found[0].turns)
    return RecallScore(
        questions=len(found),
        turns={k: fmean(each.turns[k] for each in found) for k in ks},
        sessions={k: fmean(each.sessions[k] for each in found) for k in ks},
        by_category={
            name: fmean(each.turns["10"] for each in own) for name, own in sorted(_by_category(found).items())
        },
    )


def _accuracy(answers: Sequence[Answered]) -> Share:
    return Share.of(_by_question(answers, lambda answer: answer.share_right))


def _task_average(by_category: Mapping[str, Share]) -> float:
    """Return the mean over the categories; an unanswerable question counts in its type alone."""
    shares = [accuracy.share for name, accuracy in by_category.items() if name != ABSTENTION]
    return fmean(shares) if shares else 0.0


def _verdicts(answers: Sequence[Answered], verdict: Verdict) -> float:
    return fmean(_by_question(answers, lambda answer: float(answer.verdict == verdict))) if answers else 0.0


def _f1(answer: Answered) -> float:
    return token_f1(answer.answer, answer.golds) if answer.error is None else 0.0


def _set_f1(answer: Answered) -> float:
    return max(set_f1(answer.answer, gold) for gold in answer.golds) if answer.error is None else 0.0


def _by_category(records: Sequence[_Record]) -> dict[str, list[_Record]]:
    groups: dict[str, list[_Record]] = defaultdict(list)
    for record in records:
        for name in record.categories:
            groups[name].append(record)
    return groups


def _by_question(answers: Sequence[Answered], score: Callable[[Answered], float]) -> list[float]:
    groups = _grouped(answers, lambda answer: f"{answer.conversation}\0{answer.question}")
    return [fmean(score(answer) for answer in own) for own in groups.values()]


def _grouped(values: Iterable[T], name: Callable[[T], str]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = defaultdict(list)
    for value in values:
        groups[name(value)].append(value)
    return groups
