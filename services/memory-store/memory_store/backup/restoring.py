"""Putting a backup back, while the stack is stopped. Nothing that is there is written over."""

import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from memloop.wire.errors import InvalidRequest
from memory_store.backup.manifest import Kind, Manifest, checked


def restore(folder: Path, *, redis_dirs: Sequence[Path], data_dir: Path | None, storage_dir: Path | None) -> Manifest:
    """Check the backup, then fill these empty folders; a Redis folder for each primary that was backed up.

    A Redis that keeps an append-only file reads ``appendonly.aof`` (6.2, and 7, which moves it), any other reads
    ``dump.rdb``: both are written. Raises InvalidRequest before anything is written.
    """
    manifest = checked(folder)
    dumps = _files(manifest, folder, "redis")
    if redis_dirs and len(redis_dirs) != len(dumps):
        raise InvalidRequest(f"The backup is of {len(dumps)} Redis servers: name as many folders.")
    archives = [*_place(manifest, folder, "edge", data_dir), *_place(manifest, folder, "documents", storage_dir)]
    for target in [*redis_dirs, *(target for _, target in archives)]:
        if target.exists() and any(target.iterdir()):
            raise InvalidRequest(f"{target} is not empty: move it away first.")
    for dump, target in zip(dumps, redis_dirs, strict=False):
        target.mkdir(parents=True, exist_ok=True)
        for name in ("dump.rdb", "appendonly.aof"):
            shutil.copyfile(dump, target / name)
    for archive, target in archives:
        target.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as opened:
            opened.extractall(target, filter="data")
    return manifest


def _place(manifest: Manifest, folder: Path, kind: Kind, target: Path | None) -> list[tuple[Path, Path]]:
    return [(file, target) for file in _files(manifest, folder, kind) if target is not None]


def _files(manifest: Manifest, folder: Path, kind: Kind) -> list[Path]:
    return [folder / part.name for part in manifest.parts if part.kind == kind]
