"""Stores files in Redis as jobs: the payload is the upload, the record is the result of its extraction."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias, cast

from redis.asyncio import Redis

from gateway.files.blobs import Blob, Blobs
from gateway.files.key_names import FILES_EXPIRING, Keys
from gateway.files.reservations import Quota, Reservations
from gateway.queue import IndexFull, LaneQueue, Submission
from memloop.wire.base import Wire
from memloop.wire.errors import Conflict, NotFound, Unprocessable
from memloop.wire.files import FileDeleted, FileObject, FilePage
from memloop.wire.memory import Namespace
from memloop_state.link import acknowledged, redis_errors
from memloop_state.owners import Owner
from memloop_state.partitions import id_at
from memloop_state.scripts import text

_FIRST_POLL_S: Final = 0.02
_LAST_POLL_S: Final = 0.5
_LOOKED_AT: Final = 500
"""How many files a list by purpose reads at a time, however few it returns."""
KIND: Final = "files"
"""What files are among the records of their owners."""
BeforeDeletion: TypeAlias = Callable[[str, str], Awaitable[object]]


class FileJob(Wire):
    """The payload of an extraction: the file's tenant and the place of its bytes.

    ``owner`` is the user whose file it is, if its upload named one; ``began`` the newest fencing token at that time.
    """

    tenant: str
    raw: Blob
    media_type: str = ""
    file: FileObject
    owner: Namespace | None = None
    began: int = 0

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The owner, as records are noted by it."""
        return () if self.owner is None else (Owner(self.owner, self.began),)


class StoredFile(Wire):
    """The state of a file. ``text`` is set once its status is ``processed``."""

    file: FileObject
    text: Blob | None = None
    owner: Namespace | None = None


class ReadableFile(Wire):
    """A file whose text is extracted."""

    file_id: str
    filename: str
    text: Blob
    owner: Namespace | None = None


class FileRecords:
    """Reads and changes a tenant's files. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: Redis, queue: LaneQueue, blobs: Blobs, quota: Quota) -> None:
        self._redis = redis
        self._queue = queue
        self._keys = Keys(redis)
        self._quota = quota
        self._reservations = Reservations(redis, quota)
        self._first: list[BeforeDeletion] = []
        self.blobs = blobs

    def before_deletion(self, also: BeforeDeletion) -> None:
        """Have a function called with tenant and id of every file that is deleted, before it is."""
        self._first.append(also)

    @asynccontextmanager
    async def room(self, tenant: str, *, size_bytes: int) -> AsyncGenerator[str]:
        """Hold room for one more file, of ``size_bytes`` as far as its client announced them, and yield its id.

        Raises TooLarge over the tenant's files or bytes, Unavailable while Redis is nearly full.
        """
        with self._queue.rules.counted(self._queue.name):
            await self._queue.rules.quota_bytes()
        file_id = id_at("file-", tenant, secrets.token_hex(16))
        async with self._reservations.held(tenant, file_id, size_bytes=size_bytes):
            yield file_id

    async def newest_token(self) -> int:
        """Return the newest fencing token, against which erasures are ordered."""
        return await self._queue.newest_token()

    async def enqueue(self, job: FileJob) -> None:
        """Store the file's record and queue its extraction.

        Raises TooLarge over the tenant's number of files, and as ``LaneQueue.admit`` does.
        """
        file = job.file
        fields = {
            "tenant": job.tenant,
            "status": "queued",
            "record": StoredFile(file=file, owner=job.owner).model_dump_json(),
            "payload": job.model_dump_json(),
        }
        if file.expires_at is not None:
            with redis_errors():
                await acknowledged(self._redis, "ZADD", FILES_EXPIRING, file.expires_at, f"{job.tenant} {file.id}")
        submission = Submission(
            job_id=file.id,
            lane=file.id,
            created_ms=int(time.time() * 1000),
            index=self._index(job.tenant),
            index_most=self._quota.files,
            fields=fields,
            owners=job.owners,
            kind=KIND,
        )
        try:
            await self._queue.admit(submission)
        except IndexFull:
            raise self._quota.too_many_files() from None

    async def payload(self, file_id: str) -> FileJob | None:
        """Return the upload's payload, or None when the file is gone."""
        with redis_errors():
            payload = await self._redis.hget(self._keys.job(file_id), "payload")
        return None if payload is None else FileJob.model_validate_json(text(payload))

    async def get(self, tenant: str, file_id: str) -> StoredFile:
        """Return the file. Raises NotFound when the tenant has no such file."""
        found = await self._found(tenant, [file_id]) if file_id.startswith("file-") else []
        if not found:
            raise NotFound("File not found.", param="file_id")
        return found[0]

    async def job(self, tenant: str, file_id: str) -> FileJob:
        """Return the upload's payload. Raises NotFound."""
        await self.get(tenant, file_id)
        job = await self.payload(file_id)
        if job is None:
            raise NotFound("File not found.", param="file_id")
        return job

    async def read_file(self, tenant: str, file_id: str, *, wait_s: float, param: str) -> ReadableFile:
        """Return the file with its text, waiting up to ``wait_s`` for its extraction.

        Raises NotFound, Unprocessable when the file has no text, Conflict when the wait ends without it; the errors
        name ``param``.
        """
        deadline, poll_s = time.monotonic() + wait_s, _FIRST_POLL_S
        while True:
            stored = await self.get(tenant, file_id)
            if stored.text is not None:
                return ReadableFile(
                    file_id=file_id, filename=stored.file.filename, text=stored.text, owner=stored.owner
                )
            if stored.file.status == "error":
                reason = f"The file {stored.file.filename} cannot be read: {stored.file.status_details}"
                raise Unprocessable(reason, param=param, code="file_unreadable")
            if time.monotonic() >= deadline:
                raise Conflict(
                    "The file's text is still being extracted.",
                    param=param,
                    code="file_not_ready",
                    retry_after_s=5.0,
                )
            await asyncio.sleep(poll_s)
            poll_s = min(poll_s * 1.5, _LAST_POLL_S)

    async def page(
        self, tenant: str, *, limit: int, after: str | None, newest_first: bool, purpose: str | None = None
    ) -> FilePage:
        """Return the tenant's files after the id ``after``. Raises NotFound for an unknown ``after``."""
        start = 0 if after is None else await self._rank(tenant, after, newest_first=newest_first) + 1
        count = limit + 1 if purpose is None else max(limit + 1, _LOOKED_AT)
        found = list[FileObject]()
        while len(found) <= limit and (ids := await self._ids(tenant, start, count, newest_first=newest_first)):
            start += len(ids)
            files = [stored.file for stored in await self._found(tenant, ids)]
            found += [file for file in files if purpose in (None, file.purpose)]
        data = tuple(found[:limit])
        first, last = (data[0].id, data[-1].id) if data else (None, None)
        return FilePage(data=data, first_id=first, last_id=last, has_more=len(found) > limit)

    async def _ids(self, tenant: str, start: int, count: int, *, newest_first: bool) -> list[str]:
        with redis_errors():
            ids: object = await self._redis.zrange(  # pyright: ignore[reportUnknownMemberType]
                self._index(tenant), start, start + count - 1, desc=newest_first
            )
        return [text(id_) for id_ in cast(Sequence[object], ids)]

    async def delete(self, tenant: str, file_id: str) -> FileDeleted:
        """Delete the file and its text; a running read keeps the text until it ends. Raises NotFound."""
        job, stored = await self.job(tenant, file_id), await self.get(tenant, file_id)
        for also in self._first:
            await also(tenant, file_id)
        await self._queue.forget(file_id, file_id, index=self._index(tenant))
        with redis_errors():
            await self._redis.zrem(FILES_EXPIRING, f"{tenant} {file_id}")
        await self.blobs.release(job.raw, holder=f"file:{file_id}")
        if stored.text is not None:
            await self.blobs.release(stored.text, holder=f"text:{file_id}")
        return FileDeleted(id=file_id)

    async def delete_expired(self) -> None:
        """Delete expired files."""
        with redis_errors():
            due: object = await self._redis.zrangebyscore(  # pyright: ignore[reportUnknownMemberType]
                FILES_EXPIRING, "-inf", time.time(), start=0, num=100
            )
        for line in map(text, cast(Sequence[object], due)):
            tenant, file_id = line.split(" ")
            try:
                await self.delete(tenant, file_id)
            except NotFound:
                with redis_errors():
                    await self._redis.zrem(FILES_EXPIRING, line)

    def _index(self, tenant: str) -> str:
        return self._keys.of_name(tenant).files_of(tenant)

    async def _found(self, tenant: str, ids: Sequence[str]) -> list[StoredFile]:
        async with self._redis.pipeline(transaction=False) as pipeline:
            for id_ in ids:
                pipeline.hmget(self._keys.job(id_), ["tenant", "record"])
            with redis_errors():
                rows = cast(list[list[object]], await pipeline.execute())
        return [
            StoredFile.model_validate_json(text(record))
            for owner, record in rows
            if owner is not None and record is not None and text(owner) == tenant
        ]

    async def _rank(self, tenant: str, file_id: str, *, newest_first: bool) -> int:
        key = self._index(tenant)
        with redis_errors():
            rank: Any = await (  # pyright: ignore[reportUnknownVariableType]
                self._redis.zrevrank(key, file_id) if newest_first else self._redis.zrank(key, file_id)  # pyright: ignore[reportUnknownMemberType]
            )
        if rank is None:
            raise NotFound("File not found.", param="after")
        return int(rank)
