"""Putting a backup back, while the stack is stopped. Nothing that is there is written over."""

import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path

from memloop.wire.errors import InvalidRequest
from memory_store.backup.manifest import Kind, Manifest, checked
from memory_store.backup.qdrant_shards import Qdrant, cluster_of, recreate_collections


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
        _unpack(archive, target)
    return manifest


def _unpack(archive: Path, target: Path) -> None:
    """Files and folders inside the target, and nothing else. Python before 3.11.4 has no filter that sees to it."""
    with tarfile.open(archive) as opened:
        members = opened.getmembers()
        for member in members:
            inside = (target / member.name).resolve().is_relative_to(target.resolve())
            if not inside or not (member.isreg() or member.isdir()):
                raise InvalidRequest(f"{archive.name} holds {member.name}, which is not a plain file of its folder.")
        opened.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        for member in members:
            opened.extract(member, target)


def _place(manifest: Manifest, folder: Path, kind: Kind, target: Path | None) -> list[tuple[Path, Path]]:
    return [(file, target) for file in _files(manifest, folder, kind) if target is not None]


def _files(manifest: Manifest, folder: Path, kind: Kind) -> list[Path]:
    return [folder / part.name for part in manifest.parts if part.kind == kind]


async def restore_shards(folder: Path, qdrant: Qdrant) -> None:
    """Check the backup, then make its collections on a Qdrant cluster that has none of them.

    Raises InvalidRequest before anything is made, and Unavailable.
    """
    manifest = checked(folder)
    if not manifest.collections:
        raise InvalidRequest("The backup has no shards of a Qdrant cluster.")
    if qdrant.qdrant_url is None:
        raise InvalidRequest("QDRANT_URL names no Qdrant.")
    async with cluster_of(qdrant) as nodes:
        if not nodes:
            raise InvalidRequest("QDRANT_URL is no cluster. Shards go into one, which may have a single node.")
        await recreate_collections(folder, manifest, nodes)
