"""Measures speculation and prefix cache on and off, on the tiny model and real vLLM. Run: ``make bench-inference``."""

import argparse
import asyncio
import os
import time
from collections.abc import Mapping, Sequence

import orjson
from rich.console import Console
from rich.table import Table

from benchmarks.inference.shaped import Prices, figures, measure
from benchmarks.inference.shapes import SHAPES
from benchmarks.inference.workload import Row, all_at_once, questions, reads
from benchmarks.tiny_engine import MODEL, tiny_engine
from inference.conformance.probe import Probe
from inference.conformance.suite import run_checks
from memloop_clients import EngineClient

BOTH = "both on"
VARIANTS = {
    BOTH: {"MEMLOOP_SERVE_SPECULATION": "ngram", "MEMLOOP_SERVE_PREFIX_CACHING": "true"},
    "no speculation": {"MEMLOOP_SERVE_SPECULATION": "off", "MEMLOOP_SERVE_PREFIX_CACHING": "true"},
    "no prefix cache": {"MEMLOOP_SERVE_SPECULATION": "ngram", "MEMLOOP_SERVE_PREFIX_CACHING": "false"},
}
FEW, MANY = 1, 8
SECTION_FIRST = "24 questions, section first"
ALONE, TOGETHER = f"{FEW} documents", f"{MANY} documents"


async def measured(url: str, variant: str) -> list[Row]:
    """Measure all workloads on one engine, after a warm-up read and question."""
    async with EngineClient(url, model=MODEL) as model:
        await reads(model, variant, documents=FEW, first_seed=0)
        alone, _ = await reads(model, variant, documents=FEW, first_seed=100)
        together, prompts = await reads(model, variant, documents=MANY, first_seed=200)
        first = await questions(model, variant, section_first=True)
        last = await questions(model, variant, section_first=False)
        most = await all_at_once(model, variant, prompts)
    return [alone, together, first, last, most]


async def failed_checks(url: str) -> int:
    """Count the conformance checks that fail."""
    async with EngineClient(url, model=MODEL) as model:
        probe = Probe(model, MODEL, url.removesuffix("/v1") + "/metrics")
        return sum([row.verdict == "FAILED" async for row in run_checks(probe)])


def main() -> int:
    """Measure each variant within the budget; the last line is one JSON object; return 1 if greedy replies differ."""
    parser = argparse.ArgumentParser(prog="benchmarks.inference")
    parser.add_argument("--budget", type=float, default=900, help="seconds after which no further engine starts")
    parser.add_argument("--variant", choices=VARIANTS, action="append", help="only this one; may be repeated")
    parser.add_argument("--shape", choices=SHAPES, help="random weights of this shape instead, on the GPU's engine")
    parser.add_argument("--documents", default="1,8,64,256", help="with --shape: documents read concurrently")
    parser.add_argument("--gpus", type=int, default=1, help="with --shape: GPUs of the engine")
    parser.add_argument("--usd-per-hour", type=float, default=0.0, help="with --shape: price of one GPU")
    arguments = parser.parse_args()
    if arguments.shape:
        return shaped(arguments)
    until = time.monotonic() + arguments.budget
    console, rows, failed = Console(width=130), list[Row](), 0
    for variant, settings in chosen(arguments.variant).items():
        if time.monotonic() > until:
            console.print(f"no time left for: {variant}")
            continue
        with tiny_engine(**settings) as url:
            rows += asyncio.run(measured(url, variant))
            failed += asyncio.run(failed_checks(url)) if variant == BOTH else 0
    show(console, rows)
    line = summary(rows) | {"conformance_failed": failed}
    print(orjson.dumps(line).decode())
    return 0 if line["same_greedy_output"] else 1


def chosen(names: Sequence[str] | None) -> Mapping[str, Mapping[str, str]]:
    """Return the variants of these names; all without any."""
    return {name: settings for name, settings in VARIANTS.items() if names is None or name in names}


def shaped(arguments: argparse.Namespace) -> int:
    """Measure the chunk loop on a published shape; the last line is one JSON object."""
    documents, variants = [int(count) for count in arguments.documents.split(",")], chosen(arguments.variant)
    rows = measure(arguments.shape, documents, variants, until=time.monotonic() + arguments.budget)
    line = figures(rows, Prices(arguments.gpus, arguments.usd_per_hour))
    print(orjson.dumps({"benchmark": "inference", "shape": arguments.shape, "rows": line}).decode())
    return 0


def summary(rows: Sequence[Row]) -> dict[str, object]:
    """Build the last line; null for missing measurements."""
    by = {(row.variant, row.workload): row for row in rows}
    most = next((row for row in rows if row.variant == BOTH and row.workload.startswith("the same")), None)
    together = by.get((BOTH, TOGETHER))
    return {
        "benchmark": "inference",
        "spec_speedup": _faster(by.get((BOTH, ALONE)), by.get(("no speculation", ALONE))),
        "prefix_cache_speedup": _faster(by.get((BOTH, SECTION_FIRST)), by.get(("no prefix cache", SECTION_FIRST))),
        "tokens_per_s": round(together.tokens_per_s, 1) if together else None,
        "share_of_most": round(together.tokens_per_s / most.tokens_per_s, 2) if together and most else None,
        "s_per_1m_tokens": round(together.seconds / together.input_tokens * 1e6) if together else None,
        "same_greedy_output": all(same(rows, workload) for workload in (ALONE, SECTION_FIRST)),
        "same_output_together": same(rows, TOGETHER),
        "variants": sorted({row.variant for row in rows}),
        "device": f"cpu, {os.cpu_count()} cores",
        "load": round(os.getloadavg()[0], 1),
    }


def same(rows: Sequence[Row], workload: str) -> bool:
    """Return whether at least two variants ran and all gave the same replies."""
    texts = [row.texts for row in rows if row.workload == workload]
    return len(texts) > 1 and len(set(texts)) == 1


def _faster(with_it: Row | None, without: Row | None) -> float | None:
    return round(without.seconds / with_it.seconds, 2) if with_it and without else None


def show(console: Console, rows: Sequence[Row]) -> None:
    """Print the table."""
    table = Table("engine", "workload", "calls", "s", "calls/s", "reply tokens/s", "prompt tokens")
    for row in rows:
        figures = (f"{row.seconds:.2f}", f"{row.calls_per_s:.1f}", f"{row.tokens_per_s:.0f}", str(row.input_tokens))
        table.add_row(row.variant, row.workload, str(row.calls), *figures)
    console.print(table)


if __name__ == "__main__":
    raise SystemExit(main())
