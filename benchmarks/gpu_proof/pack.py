"""Packs a proof for a bare machine with one GPU: ``make gpu-proof`` writes ``build/gpu-proof``.

The machine has Python 3.12, torch 2.11 for CUDA 13 with its Triton, numpy, pyarrow, and no registry. ``run.sh OUTPUT``
there unpacks the parts and runs ``python -m benchmarks.gpu_proof``.
"""

import argparse
import sys
import tarfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

from benchmarks.gpu_proof.slim import files_of
from benchmarks.gpu_proof.steps import ROOT
from trainer.small.pack import write_parts

_HOPPER: Final = 90
_CODE: Final = (
    "benchmarks/__init__.py",
    "benchmarks/gpu_proof",
    "packages/memloop/memloop",
    "packages/memloop/memloop_clients",
    "trainer/trainer",
    "trainer/recipes",
    "services/inference/models/memloop-tiny",
)
_NOT_NEEDED: Final = ("__pycache__", ".pyc", "trainer/trainer/small/", "apps/")
_SCRIPT: Final = """#!/usr/bin/env bash
# Proves training and rollouts on this machine's GPU, in some ten minutes: run.sh OUTPUT [--only STEP …]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); output=${1:?the folder for results.jsonl and the logs}; shift
mkdir -p "$output"; output=$(cd "$output" && pwd)
work=${WORK:-/tmp/memloop-gpu-proof}; mkdir -p "$work"
cat "$here"/part-* | tar -xz -C "$work"
export PYTHONPATH="$work/code/packages/memloop:$work/code/trainer:$work/code:$work/wheels" PYTHONUNBUFFERED=1
export RAY_USAGE_STATS_ENABLED=0 RAY_raylet_start_wait_time_s=120 HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1
cd "$work/code"
exec "${PYTHON:-python3}" -m benchmarks.gpu_proof --out "$output" "$@"
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack the code and the wheels of a folder, and print each file's size. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="benchmarks.gpu_proof.pack", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wheels", type=Path, required=True, help="folder of wheels for the machine's Python")
    options = parser.parse_args(arguments)
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as tar:
        for path in _CODE:
            tar.add(ROOT / path, f"code/{path}", filter=_code)
        for wheel in sorted(options.wheels.glob("*.whl")):
            for name, mode, content in files_of(wheel, architecture=_HOPPER):
                entry = tarfile.TarInfo(f"wheels/{name}")
                entry.size, entry.mode = len(content), mode
                tar.addfile(entry, BytesIO(content))
    for file in write_parts(options.folder, _SCRIPT, packed.getvalue()):
        print(f"{file.stat().st_size / 2**20:6.1f} MiB  {file}")
    return 0


def _code(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if any(part in entry.name for part in _NOT_NEEDED) else entry


if __name__ == "__main__":
    sys.exit(main())
