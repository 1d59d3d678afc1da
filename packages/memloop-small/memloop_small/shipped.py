"""Makes the folder of ``memloop-small`` that the launcher serves: of the base's file and the adapter beside this code.

``adapter.json`` beside the adapter is the one place that names it: its hash, that of the base's file, and that of the
merged weights. Another adapter takes its place with :func:`ship`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from memloop_small.base import FILE, SHA256, make_base, write_gguf
from memloop_small.merge import merge
from memloop_small.record import LEARNED, RECORD, Shipped

ADAPTER: Final = "adapter.safetensors"
LOG: Final = "log.jsonl"
"""The curves of the run that made the adapter."""
WEIGHTS: Final = "model.safetensors"
GGUF: Final = "model.gguf"
"""The same weights in eight bits, for engines without torch."""
MOST_BYTES: Final = 16 * 1024 * 1024
_MAKING: Final = ".making-"
Report = Callable[[str], None]


class ShippedError(ValueError):
    """The adapter, the base or what they make together is not what the record names."""


def ship(adapter: Path, folder: Path, *, run: str) -> Shipped:
    """Put an adapter in the place of the one there, and make the model of it in ``folder``. Raises ShippedError."""
    if adapter.stat().st_size > MOST_BYTES:
        raise ShippedError(f"{adapter} has more than {MOST_BYTES:,} bytes")
    with _merged(adapter, folder, print) as made:
        shipped = Shipped(
            run=run, adapter_sha256=sha256(adapter), base_sha256=SHA256, merged_sha256=sha256(made / WEIGHTS)
        )
        shutil.copyfile(adapter, LEARNED / ADAPTER)
        if (log := adapter.parent / LOG).is_file():
            shutil.copyfile(log, LEARNED / LOG)
        (LEARNED / RECORD).write_text(shipped.model_dump_json(indent=2) + "\n", "utf-8")
        _put(made, folder)
    return shipped


def make_shipped(folder: Path, *, learned: Path = LEARNED) -> None:
    """Write the model's files into ``folder``, once they are what the record names.

    Raises ShippedError, BaseError for a base with another hash, and OSError.
    """
    with _checked(learned, folder, print) as made:
        _put(made, folder)


def make_cached(folder: Path, report: Report) -> None:
    """Make the folder for engines without torch, unless it is there: all of it or nothing. Raises as make_shipped.

    One process makes it, others wait for that. What a killed one left is removed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name("making.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return
        for left in folder.parent.glob(f"{_MAKING}*"):
            shutil.rmtree(left)
        with _checked(LEARNED, folder.parent, report) as made:
            (made / WEIGHTS).unlink()
            for file in made.iterdir():
                with file.open("rb") as written:
                    os.fsync(written.fileno())
            made.rename(folder)


@contextmanager
def _checked(learned: Path, place: Path, report: Report) -> Generator[Path]:
    """Make the model that the record names, and raise ShippedError for any other."""
    shipped = Shipped.read(learned)
    if shipped.base_sha256 != SHA256 or sha256(learned / ADAPTER) != shipped.adapter_sha256:
        raise ShippedError(f"{learned / RECORD} names another base or another adapter than those here")
    with _merged(learned / ADAPTER, place, report) as made:
        merged = sha256(made / WEIGHTS)
        if merged != shipped.merged_sha256:
            raise ShippedError(f"base and adapter make weights with SHA-256 {merged}, not {shipped.merged_sha256}")
        yield made


@contextmanager
def _merged(adapter: Path, place: Path, report: Report) -> Generator[Path]:
    """Make the model in a folder inside its place, which a break leaves as it was."""
    with TemporaryDirectory(dir=place, prefix=_MAKING) as making:
        base, made = Path(making, "base"), Path(making, "made")
        report("1 of 3: the base's weights")
        make_base(FILE, base)
        report("2 of 3: what training added")
        merge(base, adapter, made)
        report("3 of 3: the sum in eight bits")
        write_gguf(FILE, made / WEIGHTS, made / GGUF)
        (made / WEIGHTS).chmod(0o644)  # safetensors keeps it to its owner; in an image another user serves it
        yield made


def _put(made: Path, folder: Path) -> None:
    """Move the files; the weights come last, for whoever asks whether the model is there."""
    for file in sorted(made.iterdir(), key=lambda file: file.name == WEIGHTS):
        file.replace(folder / file.name)


def sha256(file: Path) -> str:
    """Return the file's SHA-256 in hexadecimal."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
