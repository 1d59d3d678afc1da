"""Stores objects in a local folder or an S3-compatible bucket, in bounded memory.

Every object is stored under a *place*, ``{tenant}/{random}``. Places are never reused, so no object is overwritten.
obstore is imported by the methods: a process without storage does not load it.
"""

import os
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from memloop.wire.errors import NotFound, Unavailable
from memloop_service.private_files import make_private

if TYPE_CHECKING:
    from obstore import AsyncWritableFile
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

BLOCK_BYTES: Final = 1 << 20
"""The block size of reads."""
_PART_BYTES: Final = 5 << 20
"""The buffer size of a writer; S3 takes no smaller parts."""
_DATA: Final = "data"
_TIMES: Final["ClientConfig"] = {"timeout": "60s", "connect_timeout": "5s"}
_RETRIES: Final["RetryConfig"] = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
"""Applies to stores over HTTP only; callers retry later."""


def local_folder(url: str | None) -> Path | None:
    """Return the folder of a ``file:`` URL, or None for a bucket or no storage."""
    parts = urlsplit(url or "")
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


class Storage:
    """The objects under one URL. Methods raise Unavailable, and NotFound for missing objects."""

    def __init__(self, store: "ObjectStore") -> None:
        self._store = store

    @classmethod
    def at(cls, url: str) -> "Storage":
        """Open ``file:///folder`` (created if missing) or ``s3://bucket/prefix``; S3 reads the ``AWS_*`` variables.

        ``AWS_ALLOW_HTTP`` is read here, because obstore ignores it when it gets explicit options. Raises ValueError for
        any other URL.
        """
        from obstore.exceptions import BaseError
        from obstore.store import from_url

        try:
            if (folder := local_folder(url)) is not None:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                make_private(folder)
                return cls(from_url(url, mkdir=True))
            plain: ClientConfig = {"allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true"}
            return cls(from_url(url, client_options=_TIMES | plain, retry_config=_RETRIES))
        except (BaseError, ValueError, OSError) as error:
            raise ValueError(f"MEMLOOP_STORAGE_URL: {error}") from error

    @staticmethod
    def tenant_of(place: str) -> str:
        """Return the tenant that owns the place."""
        return place.rpartition("/")[0]

    @asynccontextmanager
    async def writing(self, place: str) -> "AsyncGenerator[AsyncWritableFile]":
        """Write a new object block by block; it exists only if the ``with`` block ends without an error."""
        from obstore import open_writer_async

        with _storage_errors():
            writer = open_writer_async(self._store, f"{place}/{_DATA}", buffer_size=_PART_BYTES, max_concurrency=2)
        try:
            yield writer
        except BaseException:
            with _storage_errors():
                await writer.close()
            await self.delete(place)
            raise
        with _storage_errors():
            await writer.close()

    async def put(self, place: str, data: bytes, name: str = _DATA) -> None:
        """Write a small object."""
        with _storage_errors():
            await self._store.put_async(f"{place}/{name}", data)

    async def get(self, place: str, name: str) -> bytes | None:
        """Read a small object; None if it does not exist."""
        try:
            with _storage_errors():
                return bytes(await (await self._store.get_async(f"{place}/{name}")).bytes_async())
        except NotFound:
            return None

    async def read(self, place: str, *, start: int, end: int) -> bytes:
        """Read bytes ``start`` to ``end``, fewer at the object's end."""
        with _storage_errors():
            return bytes(await self._store.get_range_async(f"{place}/{_DATA}", start=start, end=end))

    def blocks(self, place: str) -> Iterator[bytes]:
        """Yield the object in blocks, synchronously: run it in a thread."""
        with _storage_errors():
            for block in self._store.get(f"{place}/{_DATA}").stream(min_chunk_size=BLOCK_BYTES):
                yield bytes(block)

    async def stream(self, place: str) -> AsyncGenerator[bytes]:
        """Yield the object in blocks."""
        with _storage_errors():
            found = await self._store.get_async(f"{place}/{_DATA}")
            async for block in found.stream(min_chunk_size=BLOCK_BYTES):
                yield bytes(block)

    async def keep_newest(self, place: str, prefix: str, count: int) -> None:
        """Delete all but the newest ``count`` of the place's objects whose names begin with ``prefix``."""
        with _storage_errors():
            found = [
                meta
                async for some in self._store.list(place)  # pyright: ignore[reportUnknownMemberType] - one overload
                for meta in some
                if meta["path"].rpartition("/")[2].startswith(prefix)
            ]
            for meta in sorted(found, key=lambda meta: meta["last_modified"])[:-count]:
                with suppress(FileNotFoundError):  # another reader was first
                    await self._store.delete_async(meta["path"])

    async def delete(self, place: str) -> None:
        """Delete all objects at the place; does nothing when there are none."""
        with _storage_errors():
            async for found in self._store.list(place):  # pyright: ignore[reportUnknownMemberType] - one overload
                for meta in found:
                    with suppress(FileNotFoundError):  # another request or the sweep was first
                        await self._store.delete_async(meta["path"])


@contextmanager
def _storage_errors() -> Generator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except FileNotFoundError as error:
        raise NotFound("The stored document no longer exists.", code="document_gone") from error
    except (BaseError, OSError) as error:
        raise Unavailable("The object storage is unreachable.", retry_after_s=5.0) from error
