"""The results of a run: one row per target and level, and the figures compared with the goals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.gateway.load import Load
from benchmarks.gateway.soak import Soak
from benchmarks.gateway.workload import STREAMS, Kind, Level
from benchmarks.mock_engine import STREAM_EVENTS

DIRECT, PLAIN, OFF, ON, LITELLM = "direct", "plain", "memory_off", "memory_on", "litellm"
ADDED_AT = 4
"""The concurrency at which added latency is reported: more than one, and within the capacity of two cores."""
ALONE = 1
"""The concurrency at which memory's part is reported: with their writes, two chats at once fill two cores."""
PEER_AT = 32
"""The concurrency at which throughput is compared with the peer's."""
_SHORT: tuple[Kind, ...] = ("json", *STREAMS)


@dataclass(frozen=True, slots=True)
class Row:
    """One target under one level. Times in milliseconds; CPU per request of each of the target's processes."""

    target: str
    kind: Kind
    concurrency: int
    requests: int
    failures: int
    per_second: float
    p50_ms: float
    p99_ms: float
    first_p50_ms: float
    cpu_ms: dict[str, float]
    rss_mb: dict[str, float]


def row(target: str, level: Level, load: Load, *, cpu_s: dict[str, float], rss_mb: dict[str, float]) -> Row:
    """Build the row of one measured load."""
    return Row(
        target=target,
        kind=level.kind,
        concurrency=level.concurrency,
        requests=level.requests,
        failures=load.failures(events=STREAM_EVENTS if level.kind in STREAMS else 0),
        per_second=round(load.per_second, 1),
        p50_ms=round(load.total_ms(50), 2),
        p99_ms=round(load.total_ms(99), 2),
        first_p50_ms=round(load.first_ms(50), 2),
        cpu_ms={name: round(1000 * used / level.requests, 3) for name, used in cpu_s.items()},
        rss_mb={name: round(used, 1) for name, used in rss_mb.items()},
    )


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure and its bound; the value is None if it could not be measured."""

    name: str
    value: float | None
    bound: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Return whether the figure was measured and meets its bound."""
        if self.value is None:
            return False
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def verdict(self) -> str:
        """Return the verdict in one word."""
        return "not measured" if self.value is None else "met" if self.met else "missed"


class Rows:
    """The rows of a run and the figures derived from them."""

    def __init__(self, rows: Sequence[Row], soak: Soak | None = None) -> None:
        self._rows = rows
        self._soak = soak

    def figures(self) -> dict[str, float | None]:
        """Return the figures of the last line by name; None for those that need an absent peer."""
        ours = {kind: self.cpu_ms(OFF, "gateway", kind) for kind in _SHORT}
        with_memory = {kind: self.cpu_ms(ON, "gateway", kind) for kind in _SHORT}
        plain = {kind: self.cpu_ms(PLAIN, "plain", kind) for kind in _SHORT}
        peer = {kind: self.cpu_ms(LITELLM, "litellm", kind) for kind in _SHORT}
        return {
            **{f"cpu_ms_{kind}": ours[kind] for kind in _SHORT},
            **{f"memory_on_cpu_ms_{kind}": with_memory[kind] for kind in _SHORT},
            **{f"plain_cpu_ms_{kind}": plain[kind] for kind in _SHORT},
            **{f"plain_cpu_ratio_{kind}": ratio(ours[kind], plain[kind]) for kind in _SHORT},
            **{f"litellm_cpu_ratio_{kind}": ratio(peer[kind], ours[kind]) for kind in _SHORT},
            "litellm_rps_ratio_c32": ratio(self._rate(OFF), self._rate(LITELLM)),
            "added_p50_ms": self.added(OFF, "json", ADDED_AT, 50),
            "added_p99_ms": self.added(OFF, "json", ADDED_AT, 99),
            "memory_adds_p50_ms": self.memory_adds("json"),
            **{f"memory_adds_p50_ms_{kind}": self.memory_adds(kind) for kind in STREAMS},
            "rss_mb": max((*self._rss_mb(), *(self._soak.rss_mb if self._soak else ())), default=None),
            "rss_slope_percent": self._soak.slope_percent if self._soak else None,
        }

    def _rss_mb(self) -> Iterable[float]:
        return (row.rss_mb["gateway"] for row in self._rows if row.target in {OFF, ON})

    def cpu_ms(self, target: str, process: str, kind: str) -> float | None:
        """Return the CPU per request of one process, over all levels of a kind."""
        chosen = [row for row in self._rows if row.target == target and row.kind == kind]
        total = sum(row.cpu_ms[process] * row.requests for row in chosen)
        return round(total / sum(row.requests for row in chosen), 3) if chosen else None

    def added(self, target: str, kind: str, concurrency: int, percent: int) -> float | None:
        """Return the latency added to the direct engine's at this percentile, in milliseconds."""
        ours, direct = self._at(target, kind, concurrency), self._at(DIRECT, kind, concurrency)
        if ours is None or direct is None:
            return None
        difference = ours.p50_ms - direct.p50_ms if percent == 50 else ours.p99_ms - direct.p99_ms
        return round(difference, 2)

    def memory_adds(self, kind: str) -> float | None:
        """Return what memory adds to the median of a chat alone, in milliseconds."""
        on, off = self._at(ON, kind, ALONE), self._at(OFF, kind, ALONE)
        return round(on.p50_ms - off.p50_ms, 2) if on and off else None

    def _rate(self, target: str) -> float | None:
        found = self._at(target, "json", PEER_AT)
        return found.per_second if found else None

    def _at(self, target: str, kind: str, concurrency: int) -> Row | None:
        return next(
            (row for row in self._rows if (row.target, row.kind, row.concurrency) == (target, kind, concurrency)), None
        )


def goals(figures: dict[str, float | None]) -> Iterable[Goal]:
    """Return our own goals: CPU beside the plain proxy's and LiteLLM's, what memory adds, and resident memory."""
    yield Goal("plain_cpu_ratio_json", figures["plain_cpu_ratio_json"], 2.5)
    yield Goal("plain_cpu_ratio_stream_paced", figures["plain_cpu_ratio_stream_paced"], 1.5)
    for kind in _SHORT:
        yield Goal(f"litellm_cpu_ratio_{kind}", figures[f"litellm_cpu_ratio_{kind}"], 10, at_least=True)
    yield Goal("memory_adds_p50_ms", figures["memory_adds_p50_ms"], 15)
    yield Goal("rss_mb", figures["rss_mb"], 160)
    yield Goal("rss_slope_percent", figures["rss_slope_percent"], 1)


def ratio(over: float | None, under: float | None) -> float | None:
    """Return the quotient to two decimals; None if a part is missing."""
    return round(over / under, 2) if over is not None and under else None
