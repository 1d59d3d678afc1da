"""Makes the folder of ``memloop-small`` that the launcher serves: the base's package and the adapter in the repository.

``adapter.json`` beside the adapter is the one place that names it: its hash, that of the base's file, and that of the
merged weights. Another adapter takes its place with :func:`ship`.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pydantic import BaseModel, ConfigDict

from trainer.small.base import SHA256, make_base
from trainer.small.gguf_file import write_gguf
from trainer.small.merge import merge

# In a folder of its own: vLLM takes every safetensors file beside config.json for the model's.
ADAPTER: Final = "adapter/adapter.safetensors"
RECORD: Final = "adapter/adapter.json"
GGUF: Final = "model.gguf"
"""The same weights in eight bits, for engines without torch."""
LOG: Final = "log.jsonl"
"""The curves of the run that made the adapter."""
WEIGHTS: Final = "model.safetensors"
MOST_BYTES: Final = 16 * 1024 * 1024


class ShippedError(ValueError):
    """The adapter, the base or what they make together is not what the record names."""


class Shipped(BaseModel):
    """``adapter.json``: the run that made the adapter, and three SHA-256."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    run: str
    adapter_sha256: str
    base_sha256: str
    merged_sha256: str


def ship(adapter: Path, gguf: Path, folder: Path, *, run: str) -> Shipped:
    """Put an adapter into ``folder`` in the place of the one there, and make the model. Raises ShippedError."""
    if adapter.stat().st_size > MOST_BYTES:
        raise ShippedError(f"{adapter} has more than {MOST_BYTES:,} bytes")
    (folder / ADAPTER).parent.mkdir(parents=True, exist_ok=True)
    with _merged(gguf, adapter, folder) as made:
        shipped = Shipped(
            run=run, adapter_sha256=sha256(adapter), base_sha256=SHA256, merged_sha256=sha256(made / WEIGHTS)
        )
        shutil.copyfile(adapter, folder / ADAPTER)
        if (log := adapter.parent / LOG).is_file():
            shutil.copyfile(log, (folder / ADAPTER).parent / LOG)
        (folder / RECORD).write_text(shipped.model_dump_json(indent=2) + "\n", "utf-8")
        _put(made, folder)
    return shipped


def make_shipped(gguf: Path, folder: Path) -> Shipped:
    """Write the model's files beside the adapter, once they are what the record names.

    Raises ShippedError, BaseError for a base with another hash, and OSError.
    """
    shipped = Shipped.model_validate_json((folder / RECORD).read_bytes())
    if shipped.base_sha256 != SHA256 or sha256(folder / ADAPTER) != shipped.adapter_sha256:
        raise ShippedError(f"{folder / RECORD} names another base or another adapter than those here")
    with _merged(gguf, folder / ADAPTER, folder) as made:
        merged = sha256(made / WEIGHTS)
        if merged != shipped.merged_sha256:
            raise ShippedError(f"base and adapter make weights with SHA-256 {merged}, not {shipped.merged_sha256}")
        _put(made, folder)
    return shipped


@contextmanager
def _merged(gguf: Path, adapter: Path, folder: Path) -> Generator[Path]:
    """Make the model in a folder beside its place, which a break leaves as it was."""
    with TemporaryDirectory(dir=folder, prefix=".making-") as making:
        base, made = Path(making, "base"), Path(making, "made")
        make_base(gguf, base)
        merge(base, adapter, made)
        write_gguf(gguf, made / WEIGHTS, made / GGUF)
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
