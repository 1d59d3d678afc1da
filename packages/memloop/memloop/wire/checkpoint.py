"""Describes a trained checkpoint, in the files ``export.json`` and ``files.json`` beside its weights.

The trainer writes the first, the launcher serves it to its clients, and the gate compares both. The second names the
files in object storage and is written last, so a checkpoint without it is an unfinished upload.
"""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from memloop.wire.base import OpenWire, Wire

RECORD: Final = "export.json"


class TrainedBy(OpenWire):
    """The recipe of a run: its file's name, what it optimised, and the files that it trained on."""

    recipe: str
    objective: str
    reward: str
    data: tuple[str, ...]


class CheckpointRecord(OpenWire):
    """Where weights come from, and which prompts they were trained on.

    ``profile`` is a profile's reference; hashes are SHA-256 in hex. ``tokenizer_sha256`` is of the tokenizer's files of
    the checkpoint that training started from, ``weights_sha256`` of the weights' files in the order of their names.
    """

    started_from: str
    step: int
    dtype: str
    profile: str
    profile_hash: str
    tools_hash: str
    tokenizer_sha256: str
    weights_sha256: str
    trained_by: TrainedBy | None = None


FILES: Final = "files.json"
_SAFE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


def _safe(name: str) -> str:
    """Return the name. Raises ValueError for anything but a plain name: no folder, nothing hidden."""
    if not _SAFE.fullmatch(name) or name == FILES:
        raise ValueError("is not the plain name of a file")
    return name


class PublishedFile(Wire):
    """A file's size in bytes, and the SHA-256 of its content in hex."""

    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class PublishedFiles(Wire):
    """All files of a checkpoint by name; they lie in one folder."""

    files: dict[Annotated[str, AfterValidator(_safe)], PublishedFile] = Field(min_length=1, max_length=2000)
