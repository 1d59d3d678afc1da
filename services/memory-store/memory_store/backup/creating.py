"""Making a backup of a stack that goes on working.

Redis comes first, the vectors second, the documents last. What was acknowledged before is either a job in the snapshot
of Redis, which is done again after a restore and writes nothing twice, or among the vectors already. In the other order
a job that ended in between would be in neither.

A snapshot of a Redis server as its replicas get it: one point in time, no file of the server touched by us.

Source: the replication protocol's ``SYNC``, https://redis.io/docs/latest/operate/oss_and_stack/management/replication/.
"""

import asyncio
import json
import ssl
import tarfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from memloop.wire.errors import DependencyError, InvalidRequest, Unavailable
from memloop_state.connecting import Address, connect, primaries
from memory_store.backup.manifest import FILE, Collection, Manifest, Part, download, part_of
from memory_store.backup.qdrant_shards import Qdrant, back_up_shards, cluster_of
from memory_store.vectors.schema import is_ours

_TIMEOUT_S: Final = 600.0
_SILENCE_S: Final = 60.0
_BLOCK_BYTES: Final = 1 << 20


async def dump(server: Address, target: Path) -> int:
    """Write the server's RDB file; its size in bytes. Raises Unavailable, and DependencyError when it refuses."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            tls = ssl.create_default_context() if server.tls else None
            reader, writer = await asyncio.open_connection(server.host, server.port, ssl=tls)
            try:
                return await _dumped(server, reader, writer, target)
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise Unavailable(f"{server.host}:{server.port} returned no snapshot: {error!r}") from error


async def _dumped(server: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Path) -> int:
    if server.password:
        words = ["AUTH", *([server.username] if server.username else []), server.password]
        writer.write(_command(*words))
        _expect(await reader.readline(), b"+OK")
    writer.write(_command("SYNC"))
    line = b"\n"
    while line == b"\n":  # a keep-alive
        async with asyncio.timeout(_SILENCE_S):
            line = await reader.readline()
    head = _expect(line, b"$")
    left = size = int(head[1:])
    with target.open("wb") as file:
        while left:
            async with asyncio.timeout(_SILENCE_S):
                block = await reader.read(min(left, _BLOCK_BYTES))
            if not block:
                raise asyncio.IncompleteReadError(b"", left)
            file.write(block)
            left -= len(block)
    return size


def _expect(line: bytes, start: bytes) -> bytes:
    if not line.startswith(start) or line.startswith(b"$EOF"):
        raise DependencyError(f"Redis returned no snapshot: {line[:200].decode(errors='replace').strip()}")
    return line.strip()


def _command(*words: str) -> bytes:
    parts = [f"*{len(words)}\r\n".encode()]
    parts += [b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words]
    return b"".join(parts)


DOCUMENTS: Final = "documents.tar"
EDGE: Final = "vectors.tar"


class Stack(Qdrant):
    """The addresses of all parts, as in the settings. Without ``qdrant_url`` the store exports its vectors."""

    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    store_url: str = "http://127.0.0.1:7801"
    store_key: SecretStr | None = None
    storage_url: str | None = None


async def create(folder: Path, stack: Stack) -> Manifest:
    """Back the stack up into a new folder. Without its manifest, written last, a folder is no backup.

    Raises InvalidRequest when the folder is not empty, Unavailable and DependencyError.
    """
    await asyncio.to_thread(_make, folder)
    began_at = time.time()
    # Back up each primary to a file of its own
    async with connect(stack.redis_url.get_secret_value()) as redis:
        servers = await primaries(redis)
    targets = [folder / f"redis-{number}.rdb" for number in range(len(servers))]
    await asyncio.gather(*(dump(server, target) for server, target in zip(servers, targets, strict=True)))
    parts = [part_of(target, "redis") for target in targets]
    collections: list[Collection] = []
    if stack.qdrant_url is None:
        headers = {"Authorization": f"Bearer {stack.store_key.get_secret_value()}"} if stack.store_key else {}
        await asyncio.to_thread(download, f"{stack.store_url}/v1/admin/snapshot", folder / EDGE, headers)
        parts.append(part_of(folder / EDGE, "edge"))
    else:
        async with cluster_of(stack) as nodes:
            if nodes:  # collections are described for a cluster, whose parts are shards
                shards, collections = await back_up_shards(folder, nodes, stack.headers)
                parts += shards
            else:
                parts += await qdrant_snapshots(folder, stack)
    if stack.storage_url is not None and stack.storage_url.startswith("file:"):
        documents = Path(unquote(urlsplit(stack.storage_url).path))
        await asyncio.to_thread(_pack, documents, folder / DOCUMENTS)
        parts.append(part_of(folder / DOCUMENTS, "documents"))
    manifest = Manifest(began_at=began_at, ended_at=time.time(), parts=tuple(parts), collections=tuple(collections))
    (folder / FILE).write_text(json.dumps(asdict(manifest), indent=2))
    return manifest


def _pack(documents: Path, target: Path) -> None:
    """Pack a folder in use: what is deleted or renamed meanwhile is left out."""
    with tarfile.open(target, "w") as archive:
        archive.add(documents, arcname=".", recursive=False)
        for path in sorted(documents.rglob("*")):
            with suppress(FileNotFoundError):
                archive.add(path, arcname=f"./{path.relative_to(documents)}", recursive=False)


def _make(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise InvalidRequest(f"{folder} is not empty.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


async def qdrant_snapshots(folder: Path, stack: Stack) -> list[Part]:
    """One server's own snapshot of each collection of ours, fetched and then deleted there."""
    client = stack.client(stack.urls[0])
    parts: list[Part] = []
    try:
        for collection in (await client.get_collections()).collections:
            if not is_ours(collection.name):
                continue
            made = await client.create_snapshot(collection.name, wait=True)
            if made is None:
                raise Unavailable(f"Qdrant made no snapshot of {collection.name}.")
            target = folder / f"{collection.name}.snapshot"
            place = f"{stack.urls[0]}/collections/{collection.name}/snapshots/{made.name}"
            try:
                await asyncio.to_thread(download, place, target, stack.headers)
            finally:
                await client.delete_snapshot(collection.name, made.name, wait=True)
            parts.append(part_of(target, "qdrant"))
    finally:
        await client.close()
    return parts
