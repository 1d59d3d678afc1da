"""``python -m benchmarks.long_read --budget 600``: the last line is one JSON object.

Measures loop and worker beside an engine of fixed latency, and peak memory by size as far as the budget allows; with
``--real`` the same on the tiny model's vLLM and on calls of the published length; with ``--full`` a read of 3.5 million
tokens, kept under ``benchmarks/results/``. Figures of longer runs come from the files there, and ``from_kept`` names
them.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import orjson

from benchmarks.kept import Cells, show
from benchmarks.long_read import full_length, loop, published_calls, real, sizes, through
from benchmarks.long_read_strategies import results
from benchmarks.long_read_strategies.__main__ import SEGMENTS
from benchmarks.long_read_strategies.room import speedup
from benchmarks.tiny_engine import tiny_engine

_REAL_TOKENS = 20_000
_SECONDS_PER_MILLION_TOKENS = 60.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure within the budget, print tables and the last line."""
    options = _parser().parse_args(arguments)
    ends_at = time.monotonic() + options.budget
    asyncio.run(loop.main())
    worker = through.measured()
    show("through API, Redis and worker", [worker])
    peaks = _peaks(ends_at)
    show("peak memory (MB)", peaks)
    vllm = _on_vllm(full=options.full) if options.real else {}
    print(orjson.dumps(_last_line(worker, peaks, vllm)).decode())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.long_read")
    parser.add_argument("--budget", type=float, default=600, help="seconds for the sizes")
    parser.add_argument("--real", action="store_true", help="on the tiny model's vLLM too")
    parser.add_argument("--full", action="store_true", help="with --real: read 3.5 million tokens and keep the result")
    return parser


def _peaks(ends_at: float) -> list[Cells]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prose.txt"
        sizes.write_prose(path, 500_000)
        print(f"tokens cut per second: {sizes.cut_tokens_per_s(path):,}")
    rows: list[Cells] = []
    for tokens in sizes.SIZES:
        if time.monotonic() + tokens / 1e6 * _SECONDS_PER_MILLION_TOKENS < ends_at or not rows:
            rows += sizes.peaks([tokens])
    return rows


def _on_vllm(*, full: bool) -> Cells:
    """Return figures of calls of the published length; print the tiny model's and keep them with a full read."""
    published = published_calls.measured()
    show("on vLLM, calls of the published length", [published])
    with tiny_engine() as url:
        found = asyncio.run(real.measured(url, tokens=_REAL_TOKENS, seed=1))
        show("on vLLM, the tiny model", [found])
        if full:
            whole = asyncio.run(full_length.measured(url, tokens=full_length.TOKENS, seed=1))
            full_length.keep({**whole, "on_vllm": found, "on_vllm_published_calls": published})
            show("full length", [{name: whole[name] for name in ("chunks", "answer", "right", "seconds", "peak_mb")}])
    return published


def _last_line(worker: Cells, peaks: Sequence[Cells], vllm: Cells) -> Cells:
    whole = full_length.kept()
    by_size = {row["tokens"]: row["peak_mb"] for row in peaks}
    kept_here = {} if not whole else {"file": f"benchmarks/results/{full_length.KEPT.name}", "date": whole["date"]}
    return {
        "overhead_pct": vllm.get("overhead_pct", worker["overhead_pct"]),
        "overhead_on": "vllm" if vllm else f"an engine of {through.LATENCY_S} s a call",
        "cpu_ms_per_chunk": worker["cpu_ms_per_chunk"],
        "peak_mb_3500k": whole.get("peak_mb_total", by_size.get(full_length.TOKENS)),
        "peak_mb_3500k_from": kept_here or "this run, an engine without a model",
        "parallel8_speedup": asyncio.run(speedup(SEGMENTS))["speedup"],
        **results.headline((), results.kept_lengths()),
    }


if __name__ == "__main__":
    main()
