"""What the innocents met beside each abuser, the goals, the table and the last line."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import orjson

from benchmarks.kept import Cells, show
from memloop.scoring.comparison import percentile
from tests.hostile.innocents import Sample
from tests.hostile.process_use import Cores

MOST_TIMES_QUIET: Final = 3.0
RECOVERED_WITHIN_S: Final = 5.0
_MB: Final = 1_000_000


@dataclass(frozen=True)
class Quiet:
    """The innocents without abuse: their 99th percentile, the slowest add until it was stored, and their errors.

    ``busy_p99_s``: beside the control, whose process takes all the cores that it gets, as an abuser's does here, though
    not where abusers have machines of their own. Rows are compared with the larger one.
    """

    p99_s: float
    stored_s: float
    errors: int
    busy_p99_s: float = 0.0

    @classmethod
    def of(cls, samples: Sequence[Sample], stored: Sequence[Sample]) -> "Quiet":
        """From the samples of a quiet while. Errors in it show that the machine is too busy to measure anything."""
        errors = sum(sample.fault is not None for sample in (*samples, *stored))
        return cls(_p99(samples), max(sample.took_s for sample in stored), errors)

    @property
    def compared_s(self) -> float:
        """The time that a row is compared with."""
        return max(self.p99_s, self.busy_p99_s)

    @property
    def is_comparable(self) -> bool:
        """Whether the control alone leaves room below the goal; else the machine is too busy to compare times."""
        return self.busy_p99_s <= MOST_TIMES_QUIET * self.p99_s


@dataclass(frozen=True)
class Row:
    """One abuser: the innocents' requests, errors and times, and what the processes took at most.

    ``waiting_percent``: of the time in which the gateway could run it waited for a core. ``late_ms``: how late the
    innocents' own process began requests, at the 99th percentile, for want of a core. ``stored_s``: the slowest add
    until its memories were stored. ``backlog``: unfinished jobs at the end.
    """

    abuser: str
    ended: Mapping[str, int]
    requests: int
    errors: int
    faults: Mapping[str, int]
    p99_ms: float
    times_quiet: float
    p99_ms_by_kind: Mapping[str, float]
    waiting_percent: float
    late_ms: float
    recovery_s: float
    stored_s: float
    peak_mb: Mapping[str, float]
    backlog: int

    def missed(self, limits_mb: Mapping[str, float]) -> list[str]:
        """The goals that the row misses."""
        goals = {
            f"{self.errors} errors": not self.errors,
            f"p99 {self.times_quiet:g}x quiet": self.times_quiet <= MOST_TIMES_QUIET,
            f"recovery {self.recovery_s:g} s": self.recovery_s <= RECOVERED_WITHIN_S,
            **{f"{name} {peak:g} MB": peak < limits_mb[name] for name, peak in self.peak_mb.items()},
        }
        return [goal for goal, met in goals.items() if not met]


def row(
    abuser: str,
    ended: Mapping[str, int],
    *,
    during: Sequence[Sample],
    after: Sequence[Sample],
    stored: Sequence[Sample],
    ended_at: float,
    cores: Cores,
    quiet: Quiet,
    peak_bytes: Mapping[str, int],
    backlog: float,
) -> Row:
    """The row of one abuser, who ended at that time."""
    faults = Counter(f"{sample.kind}: {sample.fault}" for sample in (*during, *after, *stored) if sample.fault)
    kinds = sorted({sample.kind for sample in during})
    return Row(
        abuser=abuser,
        ended=ended,
        requests=len(during) + len(after),
        errors=faults.total(),
        faults=dict(faults.most_common(5)),
        p99_ms=round(1000 * _p99(during), 1),
        times_quiet=round(_p99(during) / quiet.compared_s, 1),
        p99_ms_by_kind={kind: round(1000 * _p99([each for each in during if each.kind == kind]), 1) for kind in kinds},
        waiting_percent=cores.waiting_percent,
        late_ms=round(1000 * percentile([sample.late_s for sample in during], 99), 1),
        recovery_s=round(_recovery_s(after, ended_at, slow_s=MOST_TIMES_QUIET * quiet.compared_s), 1),
        stored_s=round(max((sample.took_s for sample in stored), default=0.0), 1),
        peak_mb={name: round(peak / _MB, 1) for name, peak in peak_bytes.items()},
        backlog=int(backlog),
    )


def report(rows: Sequence[Row], quiet: Quiet, limit_bytes: Mapping[str, int]) -> None:
    """Print the table and, as the last line, one JSON object."""
    limits_mb = {name: round(limit / _MB, 1) for name, limit in limit_bytes.items()}
    show("Innocents beside abusers", [_cells(row, limits_mb) for row in rows])
    for each in rows:
        if each.faults:
            print(f"{each.abuser}: {dict(each.faults)}")
    figures = {
        "benchmark": "hostile",
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "quiet_p99_ms": round(1000 * quiet.p99_s, 1),
        "busy_p99_ms": round(1000 * quiet.busy_p99_s, 1),
        "is_comparable": quiet.is_comparable,
        "quiet_stored_s": round(quiet.stored_s, 1),
        "quiet_errors": quiet.errors,
        "limit_mb": limits_mb,
        "missed": {each.abuser: each.missed(limits_mb) for each in rows if each.missed(limits_mb)},
        "rows": [asdict(each) for each in rows],
    }
    print(orjson.dumps(figures).decode())


def _cells(row: Row, limits_mb: Mapping[str, float]) -> Cells:
    peaks = {f"{name} MB of {limits_mb[name]:.0f}": f"{peak:.0f}" for name, peak in row.peak_mb.items()}
    ended = " ".join(f"{status}:{count}" for status, count in row.ended.items())
    times = {
        "errors": row.errors,
        "p99 ms": row.p99_ms,
        "x quiet": row.times_quiet,
        "wait %": row.waiting_percent,
        "late ms": row.late_ms,
        "recovery s": row.recovery_s,
    }
    return {"abuser": row.abuser, "errors": row.errors, **times, **peaks, "backlog": row.backlog, "answers": ended}


def _p99(samples: Sequence[Sample]) -> float:
    return percentile([sample.took_s for sample in samples], 99)


def _recovery_s(after: Sequence[Sample], ended_at: float, *, slow_s: float) -> float:
    """Until the end of the last request that failed or was slow."""
    ends = [each.due + each.took_s - ended_at for each in after if each.fault or each.took_s > slow_s]
    return max(ends, default=0.0)
