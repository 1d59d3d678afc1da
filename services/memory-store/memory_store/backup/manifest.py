"""What a backup holds, downloaded from the servers, and whether it is still what it was."""

import hashlib
import json
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import JsonValue, TypeAdapter, ValidationError

from memloop.wire.errors import InvalidRequest, Unavailable

FILE: Final = "manifest.json"
Kind: TypeAlias = Literal["redis", "edge", "qdrant", "documents"]


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of a Qdrant cluster's collection, its key if it has one, and how many active copies there were."""

    collection: str
    number: int
    key: str | int | None
    copies: int


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a backup: its SHA-256 in hex, its size in bytes. ``shard`` is what a snapshot of a shard is of."""

    name: str
    kind: Kind
    sha256: str
    size: int
    shard: Shard | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection of a Qdrant cluster: with which settings it is made again, and the numbers of all its shards."""

    name: str
    settings: dict[str, JsonValue]
    aliases: tuple[str, ...]
    shards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Times are seconds since the epoch. What was acknowledged before ``began_at`` is in the backup."""

    began_at: float
    ended_at: float
    parts: tuple[Part, ...]
    collections: tuple[Collection, ...] = ()

    def shards_of(self, collection: str) -> dict[int, Part]:
        """Return the snapshots of a collection by the numbers of their shards."""
        parts = [(part.shard, part) for part in self.parts]
        return {shard.number: part for shard, part in parts if shard is not None and shard.collection == collection}


def part_of(file: Path, kind: Kind, shard: Shard | None = None) -> Part:
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return Part(file.name, kind, digest, file.stat().st_size, shard)


def checked(folder: Path) -> Manifest:
    """Return the manifest of a complete backup. Raises InvalidRequest with the reason."""
    try:
        manifest = TypeAdapter(Manifest).validate_python(json.loads((folder / FILE).read_text()))
    except (OSError, ValueError, ValidationError) as error:
        raise InvalidRequest(f"{folder} is not a complete backup: {FILE} cannot be read.") from error
    for part in manifest.parts:
        file = folder / part.name
        if not file.is_file() or part_of(file, part.kind, part.shard) != part:
            raise InvalidRequest(f"{file} has changed since the backup.")
    for collection in manifest.collections:
        if missing := sorted(set(collection.shards) - set(manifest.shards_of(collection.name))):
            raise InvalidRequest(f"{folder} has no snapshot of shard {missing[0]} of {collection.name}.")
    return manifest


TIMEOUT_S: Final = 3600.0


def download(url: str, target: Path, headers: dict[str, str]) -> None:
    """Write the response to a file. Raises Unavailable."""
    if urlsplit(url).scheme not in {"http", "https"}:
        raise InvalidRequest(f"{url!r} is not an http URL.")
    asked = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme was looked at
    try:
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer, target.open("wb") as file:  # noqa: S310
            while block := answer.read(1 << 20):
                file.write(block)
    except OSError as error:
        raise Unavailable(f"{url} returned no snapshot: {error}") from error
