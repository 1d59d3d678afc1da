"""Tries torch, transformers mode, vLLM, the engine benchmark and two GRPO steps, in this order: ``make gpu-proof``.

Each step has a time limit and a line in the table; a failure does not stop the next one. The last line is one JSON
object. The exit status is 1 when a step failed. ``--dry-run`` prints what would run and starts nothing.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import orjson

from benchmarks.gpu_proof.running import all_of, plan, run
from benchmarks.gpu_proof.steps import ROOT, steps
from benchmarks.inference.shapes import SHAPES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps, or print them. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="benchmarks.gpu_proof", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="print the steps, their limits and what is missing")
    parser.add_argument("--out", type=Path, help="folder for logs and rows; default: a temporary one, which is kept")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="qwen3-4b", help="of the engine benchmark")
    parser.add_argument("--trainer-python", default=str(ROOT / ".venv-trainer/bin/python"), help="with verl and vLLM")
    options = parser.parse_args(arguments)
    folder = options.out or Path(tempfile.mkdtemp(prefix="gpu-proof-"))
    folder.mkdir(parents=True, exist_ok=True)
    each = plan if options.dry_run else partial(run, folder=folder)
    results = all_of(steps(folder, trainer_python=options.trainer_python, shape=options.shape), each)
    said = {"dry_run": options.dry_run, "logs": str(folder), "steps": [asdict(result) for result in results]}
    print(orjson.dumps(said).decode())
    return int(any(result.status in {"failed", "timed out"} for result in results))


if __name__ == "__main__":
    sys.exit(main())
