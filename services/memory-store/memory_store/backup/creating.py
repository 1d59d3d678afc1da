"""Making a backup of a stack that goes on working.

Redis comes first, the vectors second, the documents last. What was acknowledged before is either a job in the snapshot
of Redis, which is done again after a restore and writes nothing twice, or among the vectors already. In the other order
a job that ended in between would be in neither.
"""

import asyncio
import json
import tarfile
import time
import urllib.request
from dataclasses import asdict
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict
from qdrant_client import AsyncQdrantClient

from memloop.wire.errors import InvalidRequest, Unavailable
from memloop_service.redis_link import primaries
from memory_store.backup.manifest import FILE, Manifest, Part, part_of
from memory_store.backup.redis_dump import dump
from memory_store.vectors.schema import is_ours

DOCUMENTS: Final = "documents.tar"
EDGE: Final = "vectors.tar"
_TIMEOUT_S: Final = 3600.0


class Stack(BaseSettings):
    """Where everything is, as the processes are told. Without ``qdrant_url`` the store hands its vectors out."""

    model_config = SettingsConfigDict(
        env_prefix="MEMLOOP_", frozen=True, extra="ignore", env_ignore_empty=True, populate_by_name=True
    )

    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    store_url: str = "http://127.0.0.1:7801"
    store_key: SecretStr | None = None
    qdrant_url: str | None = Field(default=None, validation_alias=AliasChoices("QDRANT_URL"))
    qdrant_api_key: SecretStr | None = Field(default=None, validation_alias=AliasChoices("QDRANT_API_KEY"))
    storage_url: str | None = None


async def create(folder: Path, stack: Stack) -> Manifest:
    """Back the stack up into a new folder. Without its manifest, written last, a folder is no backup.

    Raises InvalidRequest when the folder is not empty, Unavailable and DependencyError.
    """
    await asyncio.to_thread(_make, folder)
    began_at = time.time()
    parts = await _redis(folder, stack)
    parts += (
        await qdrant_snapshots(folder, stack) if stack.qdrant_url else [await asyncio.to_thread(_edge, folder, stack)]
    )
    if stack.storage_url is not None and stack.storage_url.startswith("file:"):
        parts.append(await asyncio.to_thread(_documents, folder, stack.storage_url))
    manifest = Manifest(began_at=began_at, ended_at=time.time(), parts=tuple(parts))
    (folder / FILE).write_text(json.dumps(asdict(manifest), indent=2))
    return manifest


def _make(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise InvalidRequest(f"{folder} is not empty.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


async def _redis(folder: Path, stack: Stack) -> list[Part]:
    """Back up each primary to a file of its own."""
    servers = await primaries(stack.redis_url.get_secret_value())
    targets = [folder / f"redis-{number}.rdb" for number in range(len(servers))]
    await asyncio.gather(*(dump(server, target) for server, target in zip(servers, targets, strict=True)))
    return [part_of(target, "redis") for target in targets]


async def qdrant_snapshots(folder: Path, stack: Stack) -> list[Part]:
    """Qdrant's own snapshot of each collection of ours, fetched and then deleted there."""
    key = stack.qdrant_api_key.get_secret_value() if stack.qdrant_api_key else None
    client = AsyncQdrantClient(url=stack.qdrant_url, api_key=key, timeout=int(_TIMEOUT_S), check_compatibility=False)
    parts: list[Part] = []
    try:
        for collection in (await client.get_collections()).collections:
            if not is_ours(collection.name):
                continue
            made = await client.create_snapshot(collection.name, wait=True)
            if made is None:
                raise Unavailable(f"Qdrant made no snapshot of {collection.name}.")
            target = folder / f"{collection.name}.snapshot"
            place = f"{stack.qdrant_url}/collections/{collection.name}/snapshots/{made.name}"
            await asyncio.to_thread(_fetch, place, target, {"api-key": key} if key else {})
            await client.delete_snapshot(collection.name, made.name, wait=True)
            parts.append(part_of(target, "qdrant"))
    finally:
        await client.close()
    return parts


def _edge(folder: Path, stack: Stack) -> Part:
    headers = {"Authorization": f"Bearer {stack.store_key.get_secret_value()}"} if stack.store_key else {}
    _fetch(f"{stack.store_url}/v1/admin/snapshot", folder / EDGE, headers)
    return part_of(folder / EDGE, "edge")


def _documents(folder: Path, storage_url: str) -> Part:
    with tarfile.open(folder / DOCUMENTS, "w") as archive:
        archive.add(Path(unquote(urlsplit(storage_url).path)), arcname=".")
    return part_of(folder / DOCUMENTS, "documents")


def _fetch(url: str, target: Path, headers: dict[str, str]) -> None:
    """What the URL gives, into a file. Raises Unavailable."""
    if urlsplit(url).scheme not in {"http", "https"}:
        raise InvalidRequest(f"{url!r} is not an http URL.")
    asked = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme was looked at
    try:
        with urllib.request.urlopen(asked, timeout=_TIMEOUT_S) as answer, target.open("wb") as file:  # noqa: S310
            while block := answer.read(1 << 20):
                file.write(block)
    except OSError as error:
        raise Unavailable(f"{url} returned no snapshot: {error}") from error
