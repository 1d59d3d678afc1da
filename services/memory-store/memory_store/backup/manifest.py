"""What a backup holds, and whether it is still what it was."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from memloop.wire.errors import InvalidRequest

FILE: Final = "manifest.json"
Kind: TypeAlias = Literal["redis", "edge", "qdrant", "documents"]


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a backup: its SHA-256 in hex, its size in bytes."""

    name: str
    kind: Kind
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """Times are seconds since the epoch. What was acknowledged before ``began_at`` is in the backup."""

    began_at: float
    ended_at: float
    parts: tuple[Part, ...]


def part_of(file: Path, kind: Kind) -> Part:
    """Describe the file as a part."""
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return Part(file.name, kind, digest, file.stat().st_size)


def checked(folder: Path) -> Manifest:
    """Return the manifest of a complete backup. Raises InvalidRequest with the reason."""
    try:
        manifest = TypeAdapter(Manifest).validate_python(json.loads((folder / FILE).read_text()))
    except (OSError, ValueError, ValidationError) as error:
        raise InvalidRequest(f"{folder} is not a complete backup: {FILE} cannot be read.") from error
    for part in manifest.parts:
        file = folder / part.name
        if not file.is_file() or part_of(file, part.kind) != part:
            raise InvalidRequest(f"{file} has changed since the backup.")
    return manifest
