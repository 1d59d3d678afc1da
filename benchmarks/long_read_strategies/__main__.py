"""``python -m benchmarks.long_read_strategies``: the last line is one JSON object.

Measures segments on a mock engine with spare capacity, evidence against the truth, and every strategy at one length on
vLLM. Accuracy by length: :mod:`benchmarks.long_read_strategies.lengths`. ``--keep`` writes the result.
"""

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import nullcontext

import orjson

from benchmarks.kept import Cells, show
from benchmarks.long_read_strategies.evidence import measured_evidence
from benchmarks.long_read_strategies.measure import (
    DISTRACTORS_PER_CHUNK,
    PARALLEL,
    PLAIN,
    WAYS,
    Row,
    documents_of,
    measured,
)
from benchmarks.long_read_strategies.questions import measured_questions
from benchmarks.long_read_strategies.results import SHORT, headline, keep_ways, kept_lengths
from benchmarks.long_read_strategies.room import speedup
from benchmarks.tiny_engine import MODEL, tiny_engine
from memloop.profiles import Profile, load_profile
from memloop_clients.engine import EngineClient

SEGMENTS = 8


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print tables and the last line."""
    options = _parser().parse_args(arguments)
    room = asyncio.run(speedup(SEGMENTS))
    show("segments on an engine with room", [{"segments": SEGMENTS, **room}])
    with nullcontext(options.engine_url) if options.engine_url else tiny_engine() as url:
        print(orjson.dumps(asyncio.run(_run(url, options, room["speedup"]))).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.long_read_strategies")
    parser.add_argument("--engine-url", help="an engine that serves the tiny model; default: start one")
    parser.add_argument("--tokens", type=int, default=SHORT, help="length for the table of ways")
    parser.add_argument("--reads", type=int, default=24, help="documents for each row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/")
    return parser


async def _run(url: str, options: argparse.Namespace, room_speedup: float) -> Cells:
    profile = load_profile("tiny")
    async with EngineClient(url, model=MODEL) as engine:
        evidence = await measured_evidence(engine, profile, tokens=2048, count=options.reads, seed=options.seed)
        show("evidence", [{"what": name, "value": value} for name, value in evidence.cells().items()])
        ways = await _ways(engine, profile, options)
        show(f"ways of reading {options.tokens:,} tokens", ways)
    if options.keep:
        keep_ways({"evidence": evidence.cells(), "ways": ways})
    return {
        "benchmark": "long_read_strategies",
        **headline((), kept_lengths()),
        "parallel8_speedup": room_speedup,
        "parallel8_speedup_tiny_engine": _ratio(ways),
        "evidence": evidence.cells(),
        "ways": ways,
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


def _ratio(ways: Sequence[Cells]) -> float | None:
    """Return the speed-up of one read in segments over one plain read, on the tiny model's own engine."""
    seconds = {str(row["way"]): row["seconds"] for row in ways}
    plain, parallel = seconds[PLAIN.name], seconds[PARALLEL.name]
    return round(float(str(plain)) / float(str(parallel)), 2) if plain and parallel else None


if __name__ == "__main__":
    main()
