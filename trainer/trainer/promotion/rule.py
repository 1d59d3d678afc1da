"""Decides by the engine calls of both models whether the candidate may get more requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from memloop.wire.rollouts import CALL_BOUNDS_S, Rollout, TargetCalls

Verdict: TypeAlias = Literal["wait", "good", "bad"]
_QUANTILE = 0.95


@dataclass(frozen=True, slots=True)
class Window:
    """The calls of one model in one stage: how many, how many failed, and the durations of the others by class."""

    calls: int
    failed: int
    durations: tuple[int, ...]

    @classmethod
    def between(cls, before: TargetCalls, after: TargetCalls) -> Window:
        """Return what was counted after ``before``."""
        durations = tuple(late - early for early, late in zip(before.durations, after.durations, strict=True))
        return cls(after.calls - before.calls, after.failed - before.failed, durations)

    @property
    def failure_rate(self) -> float:
        """The share of calls that failed, 0 to 1."""
        return self.failed / self.calls if self.calls else 0.0

    @property
    def p95_s(self) -> float | None:
        """The 95th percentile of the durations in seconds, within its class by interpolation; None without calls."""
        return quantile(self.durations, _QUANTILE)


@dataclass(frozen=True, slots=True)
class CanaryRule:
    """A stage needs ``min_calls`` calls of each model.

    The candidate's failure rate may be higher by at most ``max_failures`` (0 to 1), and its 95th percentile at most
    ``max_slowdown`` times the incumbent's.
    """

    min_calls: int = 100
    max_failures: float = 0.01
    max_slowdown: float = 1.5

    def judge(self, incumbent: Window, candidate: Window) -> tuple[Verdict, str]:
        """Return the verdict on a stage so far, with the figures behind it.

        It is bad as soon as the failures exceed what ``min_calls`` calls may have; all else waits for the calls.
        """
        allowed = incumbent.failure_rate + self.max_failures
        figures = _figures(incumbent, candidate)
        if candidate.failed > allowed * max(candidate.calls, self.min_calls):
            return "bad", f"it fails more often than {allowed:.1%}: {figures}"
        if min(incumbent.calls, candidate.calls) < self.min_calls:
            return "wait", figures
        ours, theirs = candidate.p95_s, incumbent.p95_s
        if ours is not None and theirs is not None and ours > self.max_slowdown * theirs:
            return "bad", f"its 95th percentile is more than {self.max_slowdown:g} times the incumbent's: {figures}"
        return "good", figures


def stage_window(before: Rollout, after: Rollout) -> tuple[Window, Window]:
    """Return what the incumbent's and the candidate's calls were between two looks at a rollout."""
    return (
        Window.between(before.incumbent_calls, after.incumbent_calls),
        Window.between(before.candidate_calls, after.candidate_calls),
    )


def quantile(durations: Sequence[int], share: float) -> float | None:
    """Return a quantile of the durations that classes count, as Prometheus's ``histogram_quantile`` does.

    In the last class, which has no upper bound, it is that of the class before.
    """
    rank, passed, lower = share * sum(durations), 0, 0.0
    for count, upper in zip(durations, (*CALL_BOUNDS_S, CALL_BOUNDS_S[-1]), strict=True):
        if count and passed + count >= rank:
            return lower + (upper - lower) * (rank - passed) / count
        passed, lower = passed + count, upper
    return None


def _figures(incumbent: Window, candidate: Window) -> str:
    return f"candidate {_of(candidate)}; incumbent {_of(incumbent)}"


def _of(window: Window) -> str:
    p95 = window.p95_s
    duration = "no duration" if p95 is None else f"p95 {p95:.2f} s"
    return f"{window.calls} calls, {window.failed} failed, {duration}"
