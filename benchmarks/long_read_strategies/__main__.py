"""``python -m benchmarks.long_read_strategies --budget-s 600``: the last line is one JSON object.

Segments on a mock engine with room; evidence against the truth; every way of reading at one length; then plain MemAgent
(and its segments) at growing lengths, as far as the budget goes. ``--keep`` writes the result and the plot.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import orjson

from benchmarks.long_read_strategies.engine import MODEL, tiny_engine
from benchmarks.long_read_strategies.evidence import measured_evidence
from benchmarks.long_read_strategies.measure import PARALLEL, PLAIN, WAYS, Row, Way, documents_of, measured
from benchmarks.long_read_strategies.questions import measured_questions
from benchmarks.long_read_strategies.results import LONG, SHORT, Cells, headline, keep, show
from benchmarks.long_read_strategies.room import speedup
from memloop.clients.engine import EngineClient
from memloop.profiles import Profile, load_profile

LENGTHS = (SHORT, 32_768, 131_072, 524_288, LONG)
SEGMENTS = 8
DISTRACTORS_PER_CHUNK = 0.2
_SAFETY = 1.3
_LEAST_READS = 4


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure within the budget, print tables and the last line."""
    options = _parser().parse_args(arguments)
    ends_at = time.monotonic() + options.budget_s
    room = asyncio.run(speedup(SEGMENTS))
    show("segments on an engine with room", [{"segments": SEGMENTS, **room}])
    with nullcontext(options.engine_url) if options.engine_url else tiny_engine() as url:
        print(orjson.dumps(asyncio.run(_run(url, options, room["speedup"], ends_at))).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.long_read_strategies")
    parser.add_argument("--engine-url", help="an engine that serves the tiny model; else one is started")
    parser.add_argument("--budget-s", type=float, default=600)
    parser.add_argument("--tokens", type=int, default=SHORT, help="length for the table of ways")
    parser.add_argument("--reads", type=int, default=24, help="documents for each row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/")
    return parser


async def _run(url: str, options: argparse.Namespace, room_speedup: float, ends_at: float) -> Cells:
    profile = load_profile("tiny")
    async with EngineClient(url, model=MODEL) as engine:
        evidence = await measured_evidence(engine, profile, tokens=2048, count=options.reads, seed=options.seed)
        show("evidence", [{"what": name, "value": value} for name, value in evidence.cells().items()])
        ways = await _ways(engine, profile, options)
        show(f"ways of reading {options.tokens:,} tokens", ways)
        lengths = await _lengths(engine, profile, options, ends_at)
        show("lengths", lengths)
    if options.keep:
        keep({"evidence": evidence.cells(), "ways": ways, "lengths": lengths})
    found = headline(lengths, room_speedup, seconds_speedup=_ratio(ways))
    return {
        "benchmark": "long_read_strategies",
        **found,
        "evidence": evidence.cells(),
        "ways": ways,
        "lengths": lengths,
    }


async def _ways(engine: EngineClient, profile: Profile, options: argparse.Namespace) -> list[Cells]:
    rows: list[Row] = []
    for way in WAYS:
        documents = documents_of(
            profile,
            tokens=options.tokens,
            hops=way.hops,
            count=options.reads,
            seed=options.seed,
            distractors_per_chunk=DISTRACTORS_PER_CHUNK,
        )
        rows.append(await measured(engine, profile, way, documents, tokens=options.tokens, alone=True))
    asked = {"tokens": options.tokens, "count": 2, "seed": options.seed}
    rows += [await measured_questions(engine, profile, together=together, **asked) for together in (False, True)]
    return [row.cells() for row in rows]


async def _lengths(engine: EngineClient, profile: Profile, options: argparse.Namespace, ends_at: float) -> list[Cells]:
    """Rows of growing length, each with as many reads as are likely to end within the budget."""
    rows: list[Cells] = []
    paces = {way.name: _Pace(options.reads) for way in (PLAIN, PARALLEL)}
    for tokens in LENGTHS:
        for way in (PLAIN, PARALLEL):
            pace = paces[way.name]
            reads = pace.reads_until(ends_at, tokens)
            if reads >= _LEAST_READS:
                began = time.monotonic()
                rows.append(await _length(engine, profile, way, tokens, reads, options.seed))
                pace.took(time.monotonic() - began, reads, tokens)
    return rows


@dataclass
class _Pace:
    """How many documents a way of reading has time for, by the time that its last row took."""

    reads: int
    seconds_per_token: float = 0.0

    def reads_until(self, ends_at: float, tokens: int) -> int:
        if self.seconds_per_token:
            left_s = ends_at - time.monotonic()
            self.reads = min(self.reads, int(left_s / (_SAFETY * self.seconds_per_token * tokens)))
        return self.reads

    def took(self, seconds: float, reads: int, tokens: int) -> None:
        self.seconds_per_token = seconds / (reads * tokens)


async def _length(engine: EngineClient, profile: Profile, way: Way, tokens: int, reads: int, seed: int) -> Cells:
    documents = await asyncio.to_thread(
        documents_of, profile, tokens=tokens, hops=way.hops, count=reads, seed=seed, distractors_per_chunk=0.0
    )
    row = await measured(engine, profile, way, documents, tokens=tokens, alone=False)
    return row.cells()


def _ratio(ways: Sequence[Cells]) -> float | None:
    """How much faster one read in segments was than one plain read, on the tiny model's own engine."""
    seconds = {str(row["way"]): row["seconds"] for row in ways}
    plain, parallel = seconds[PLAIN.name], seconds[PARALLEL.name]
    return round(float(str(plain)) / float(str(parallel)), 2) if plain and parallel else None


if __name__ == "__main__":
    main()
