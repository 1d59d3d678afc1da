"""Measures time and memory of synthesis at several sizes, each in its own process, so that peaks do not mix."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from memloop.wire.chat import Json
from trainer.data.encyclopedia import write_encyclopedia


def bench_synthesis(sizes: Sequence[int], *, documents: int, seed: int) -> Iterator[Json]:
    """Yield the command's own figures for each number of items, all over the same made-up questions.

    Raises CalledProcessError when the command fails.
    """
    with TemporaryDirectory() as folder:
        asked = Path(folder, "questions.jsonl")
        write_encyclopedia(asked, max(sizes), seed=seed)
        for items in sizes:
            yield _one(asked, items, documents, Path(folder, str(items)))


def _one(asked: Path, items: int, documents: int, out: Path) -> Json:
    given = ["--questions", str(asked), "--items", str(items), "--dev", "0", "--documents", str(documents)]
    command = [sys.executable, "-m", "trainer", "data", "synthesise", *given, "--out", str(out)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)  # noqa: S603 - our own command
    said = cast(Json, json.loads(done.stdout))
    return {"items": items, "documents": documents} | {key: said[key] for key in ("seconds", "peak_rss_mib", "mib")}
