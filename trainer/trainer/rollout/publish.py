"""``python -m trainer publish``: uploads an export to object storage, from which inference fetches it.

s3://models/reader/step-40/model.safetensors   the files of the export
s3://models/reader/step-40/files.json          their sizes and SHA-256, written when all of them are there
"""

# One overload of obstore.put is partly unknown to pyright.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore
from pydantic import ValidationError

from memloop.wire.checkpoint import FILES, PublishedFile, PublishedFiles
from trainer.checkpoint_store import store_at
from trainer.rollout.export_record import ExportError, read_record

_BLOCK = 1 << 20
_PART_BYTES = 16 << 20


class PublishError(RuntimeError):
    """The storage cannot be used, or holds another checkpoint there."""


def publish(arguments: Sequence[str] | None = None) -> None:
    """Upload an export. Exits with 2 and the reason when it cannot be uploaded."""
    chosen = _parser().parse_args(arguments)
    try:
        files = published(chosen.export, chosen.url)
    except (ExportError, PublishError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    megabytes = sum(each.size for each in files.files.values()) / 1e6
    print(f"{chosen.url}: {len(files.files)} files, {megabytes:.1f} MB")


def published(folder: Path, url: str) -> PublishedFiles:
    """Upload the export's files, then their list. A second upload of the same files only checks them.

    Raises ExportError for a folder that is no export, PublishError for a storage that refuses or holds another one.
    """
    read_record(folder)
    files = files_of(folder)
    try:
        store = store_at(url)
        _upload(store, folder, files)
    except (BaseError, ValueError, OSError, PublishError) as error:
        raise PublishError(f"{url}: {error}") from error
    return files


def files_of(folder: Path) -> PublishedFiles:
    """List the files right in the folder; hidden ones are left out. Raises ExportError for an odd name."""
    found = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    try:
        return PublishedFiles(files={path.name: _described(path) for path in found if path.name != FILES})
    except ValidationError as error:
        raise ExportError(f"{folder} has a file whose name cannot be published: {error.errors()[0]['loc']}") from error


def _described(path: Path) -> PublishedFile:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return PublishedFile(size=path.stat().st_size, sha256=digest.hexdigest())


def _upload(store: ObjectStore, folder: Path, files: PublishedFiles) -> None:
    there = _listed(store)
    if there == files:
        return
    if there is not None:
        raise PublishError("another checkpoint is there: publish each one under an address of its own")
    for name in files.files:
        obstore.put(store, name, folder / name, chunk_size=_PART_BYTES)
    obstore.put(store, FILES, files.model_dump_json(indent=2).encode() + b"\n")


def _listed(store: ObjectStore) -> PublishedFiles | None:
    try:
        return PublishedFiles.model_validate_json(bytes(obstore.get(store, FILES).bytes()))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise PublishError(f"its {FILES} is not a list of files") from error


def _parser() -> argparse.ArgumentParser:
    about = "Upload an export to object storage, from which inference fetches it (memloop-inference fetch)."
    parser = argparse.ArgumentParser(prog="python -m trainer publish", description=about)
    parser.add_argument("export", type=Path, help="the folder of an export")
    parser.add_argument("url", help="s3://bucket/folder, gs://…, az://… or file:///folder; its own for each checkpoint")
    return parser
