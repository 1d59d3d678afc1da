"""Tries one GPU with real training: packages, memory, GRPO, resume, export, adapters. ``make gpu-proof`` packs it.

Each step has a time limit and a line in the table; a failure does not stop the next one. ``results.jsonl`` has a line
for each step as it ends, and the last line printed is one JSON object. The exit status is 1 when a step failed.
``--dry-run`` prints what would run and starts nothing.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import orjson

from benchmarks.gpu_proof.running import Result, plan, run
from benchmarks.gpu_proof.steps import steps


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps, or print them. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="benchmarks.gpu_proof", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="print the steps, their limits and what is missing")
    parser.add_argument("--out", type=Path, help="folder for logs and rows; default: a temporary one, which is kept")
    parser.add_argument("--only", nargs="*", help="names of the steps to run; default: all")
    options = parser.parse_args(arguments)
    folder = (options.out or Path(tempfile.mkdtemp(prefix="gpu-proof-"))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    each = plan if options.dry_run else partial(run, folder=folder)
    results: list[Result] = []
    for step in steps(folder):
        if options.only and step.name not in options.only:
            continue
        results.append(each(step))
        print(results[-1].line, flush=True)
        if not options.dry_run:
            with (folder / "results.jsonl").open("ab") as lines:
                lines.write(orjson.dumps(asdict(results[-1])) + b"\n")
    said = {"dry_run": options.dry_run, "logs": str(folder), "steps": [asdict(result) for result in results]}
    print(orjson.dumps(said).decode())
    return int(any(result.status in {"failed", "timed out"} for result in results))


if __name__ == "__main__":
    sys.exit(main())
