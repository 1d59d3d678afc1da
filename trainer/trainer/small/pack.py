"""Packs all that a bare machine with one GPU needs to train the small model: a folder of parts, and one script.

The machine has torch, transformers and numpy, and no registry. The parts hold the code, the base's weights and wheels
of what else the code imports, for each Python that the machine may have.
"""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

PART_BYTES: Final = 28 * 1024 * 1024
_SCRIPT: Final = """#!/usr/bin/env bash
# Trains memloop-small on this machine: run.sh OUTPUT [MINUTES] [--small]. The last line is one JSON object.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); output=${1:?the folder for adapter.safetensors}; minutes=${2:-13}
work=${WORK:-/tmp/memloop-small}; mkdir -p "$work" "$output"
cat "$here"/part-* | tar -xz -C "$work"
python=${PYTHON:-python3}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
export PYTHONPATH="$work/code:$work/wheels/any:$work/wheels/$version" PYTHONUNBUFFERED=1
cd "$work"
[ -e base/tokenizer_config.json ] || "$python" -m memloop_small base base
"$python" -m trainer.small gpu --base base --output "$output" --minutes "$minutes" ${3:-}
"""


def pack(folder: Path, *, sources: Sequence[Path], wheels: Path) -> list[Path]:
    """Write ``run.sh`` and ``part-00`` on, each below 30 MB, and return the files.

    ``sources`` are folders of packages, the base among their files; ``wheels`` holds one folder of wheels for each
    Python, and ``any``.
    """
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as tar:
        for source in sources:
            tar.add(source, f"code/{source.name}", filter=_code)
        for wheel in sorted(wheels.rglob("*.whl")):
            _add_wheel(tar, wheel, f"wheels/{wheel.parent.name}")
    return write_parts(folder, _SCRIPT, packed.getvalue())


def write_parts(folder: Path, script: str, packed: bytes) -> list[Path]:
    """Write ``run.sh`` and the packed bytes as ``part-00`` on into the folder, which is emptied; return the files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = [folder / "run.sh"]
    files[0].write_text(script, "utf-8")
    files[0].chmod(0o755)
    for number, start in enumerate(range(0, len(packed), PART_BYTES)):
        files.append(folder / f"part-{number:02d}")
        files[-1].write_bytes(packed[start : start + PART_BYTES])
    return files


def _code(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = "__pycache__" in entry.name or entry.name.endswith((".pyc", ".safetensors"))
    return None if left_out else entry


def _add_wheel(tar: tarfile.TarFile, wheel: Path, folder: str) -> None:
    with zipfile.ZipFile(wheel) as opened:
        for name in opened.namelist():
            if not name.endswith("/"):
                entry = tarfile.TarInfo(f"{folder}/{name}")
                entry.size = opened.getinfo(name).file_size
                tar.addfile(entry, BytesIO(opened.read(name)))
