"""Objects in a local folder or an S3-compatible bucket, in bounded memory.

Every object lives under a *place*, ``{tenant}/{random}``, that is never used twice, so nothing is ever overwritten.
"""

import os
import secrets
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore, from_url

from memloop.wire.errors import NotFound, Unavailable

if TYPE_CHECKING:  # they exist for checkers alone
    from obstore.store import ClientConfig, RetryConfig

BLOCK_BYTES: Final = 1 << 20
"""How much is read at once."""
_PART_BYTES: Final = 5 << 20
"""What a writer holds before it goes out; S3 takes no smaller parts."""
_DATA: Final = "data"
_TIMES: Final["ClientConfig"] = {"timeout": "60s", "connect_timeout": "5s"}
_RETRIES: Final["RetryConfig"] = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
"""Only for a store over HTTP; whoever asks tries again later."""


def local_folder(url: str | None) -> Path | None:
    """The folder of a ``file:`` URL; None for a bucket, or for no storage."""
    parts = urlsplit(url or "")
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


class Writer(Protocol):
    """An object that is being written."""

    async def write(self, block: bytes, /) -> object:
        """Append."""
        ...


class Storage:
    """The objects under one URL. Methods raise Unavailable, and NotFound for what is not there."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @classmethod
    def at(cls, url: str) -> "Storage":
        """``file:///folder`` (made when it is missing) or ``s3://bucket/prefix``; S3 reads the ``AWS_*`` variables.

        ``AWS_ENDPOINT`` and ``AWS_ALLOW_HTTP`` are among them: obstore reads the latter itself only without options.
        Raises ValueError when the URL means nothing.
        """
        try:
            if url.startswith("file:"):
                return cls(from_url(url, mkdir=True))
            plain: ClientConfig = {"allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true"}
            return cls(from_url(url, client_options=_TIMES | plain, retry_config=_RETRIES))
        except (BaseError, ValueError, OSError) as error:
            raise ValueError(f"MEMLOOP_STORAGE_URL: {error}") from error

    @staticmethod
    def new_place(tenant: str) -> str:
        """Where a new object of the tenant goes."""
        return f"{tenant}/{secrets.token_hex(16)}"

    @staticmethod
    def tenant_of(place: str) -> str:
        """Whose object it is."""
        return place.rpartition("/")[0]

    @asynccontextmanager
    async def writing(self, place: str, name: str = _DATA) -> AsyncGenerator[Writer]:
        """A new object, block by block; it is there once the block ends without an error."""
        with _storage_errors():
            writer = obstore.open_writer_async(
                self._store, f"{place}/{name}", buffer_size=_PART_BYTES, max_concurrency=2
            )
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
        """A whole small object."""
        with _storage_errors():
            await obstore.put_async(self._store, f"{place}/{name}", data)

    async def get(self, place: str, name: str) -> bytes | None:
        """A whole small object, or None when there is none."""
        try:
            with _storage_errors():
                return bytes(await (await obstore.get_async(self._store, f"{place}/{name}")).bytes_async())
        except NotFound:
            return None

    async def read(self, place: str, *, start: int, end: int) -> bytes:
        """Bytes ``start`` to ``end``, fewer at the object's end."""
        with _storage_errors():
            return bytes(await obstore.get_range_async(self._store, f"{place}/{_DATA}", start=start, end=end))

    def blocks(self, place: str) -> Iterator[bytes]:
        """The whole object, block by block. It blocks: run it in a thread."""
        with _storage_errors():
            for block in obstore.get(self._store, f"{place}/{_DATA}").stream(min_chunk_size=BLOCK_BYTES):
                yield bytes(block)

    async def stream(self, place: str) -> AsyncGenerator[bytes]:
        """The whole object, block by block."""
        with _storage_errors():
            found = await obstore.get_async(self._store, f"{place}/{_DATA}")
            async for block in found.stream(min_chunk_size=BLOCK_BYTES):
                yield bytes(block)

    async def delete(self, place: str) -> None:
        """Everything at the place; harmless when nothing is there."""
        with _storage_errors():
            async for found in obstore.list(self._store, place):  # pyright: ignore[reportUnknownMemberType] - one overload
                await obstore.delete_async(self._store, [meta["path"] for meta in found])


@contextmanager
def _storage_errors() -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound("The document is no longer stored.", code="document_gone") from error
    except (BaseError, OSError) as error:
        raise Unavailable("The object storage cannot be reached.", retry_after_s=5.0) from error
