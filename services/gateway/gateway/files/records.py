"""Stores files as jobs: the payload is the upload, the record is the result of its extraction."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from gateway.files.blobs import Blob, Blobs, too_many_files
from gateway.queue import IndexFull, LaneQueue, Submission
from memloop.wire.base import Wire
from memloop.wire.errors import Conflict, NotFound, Unprocessable
from memloop.wire.files import FileDeleted, FileObject, FilePage
from memloop.wire.memory import Namespace
from memloop_state.contents import Quota
from memloop_state.indexes import Indexes
from memloop_state.link import State
from memloop_state.owners import Owner
from memloop_state.steps import Partitions, id_at

_FIRST_POLL_S: Final = 0.02
_LAST_POLL_S: Final = 0.5
_LOOKED_AT: Final = 500
"""How many files a list by purpose reads at a time, however few it returns."""
FILES_EXPIRING: Final = "memloop:files:expiring"
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
    """Reads and changes a tenant's files. Methods raise Unavailable."""

    def __init__(self, state: State, queue: LaneQueue, blobs: Blobs, quota: Quota) -> None:
        self.queue = queue
        self._parts = Partitions(state)
        self._indexes = Indexes(state)
        self._quota = quota
        self._first: list[BeforeDeletion] = []
        self.blobs = blobs

    def before_deletion(self, also: BeforeDeletion) -> None:
        """Have a function called with tenant and id of every file that is deleted, before it is."""
        self._first.append(also)

    @asynccontextmanager
    async def room(self, tenant: str, *, size_bytes: int) -> AsyncGenerator[str]:
        """Hold room for one more file, of ``size_bytes`` as far as its client announced them, and yield its id.

        Raises TooLarge over the tenant's files or bytes, Unavailable while the state is nearly full.
        """
        async with self.queue.rules.admitting(self.queue.name):
            pass
        file_id = id_at("file-", tenant, secrets.token_hex(16))
        async with self.blobs.reserved(tenant, file_id, size_bytes=size_bytes):
            yield file_id

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
            await self._indexes.add(FILES_EXPIRING, {f"{job.tenant} {file.id}": file.expires_at}, sure=True)
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
            await self.queue.admit(submission)
        except IndexFull:
            raise too_many_files(self._quota) from None

    async def get(self, tenant: str, file_id: str) -> StoredFile:
        """Return the file. Raises NotFound when the tenant has no such file."""
        return (await self.some(tenant, [file_id]))[0]

    async def some(self, tenant: str, file_ids: Sequence[str]) -> list[StoredFile]:
        """Return files in the order of their ids. Raises NotFound unless the tenant has all of them."""
        found = await self._found(tenant, [one for one in file_ids if one.startswith("file-")])
        if len(found) < len(file_ids):
            known = {stored.file.id for stored in found}
            place = next(place for place, one in enumerate(file_ids, start=1) if one not in known)
            which = f"File {place} of {len(file_ids)}" if len(file_ids) > 1 else "File"
            raise NotFound(f"{which} not found.", param="file_id")
        return found

    async def job(self, tenant: str, file_id: str) -> FileJob:
        """Return the upload's payload. Raises NotFound."""
        await self.get(tenant, file_id)
        job = await self.queue.jobs.payload(file_id, FileJob)
        if job is None:
            raise NotFound("File not found.", param="file_id")
        return job

    async def read_file(self, tenant: str, file_id: str, *, deadline: float, param: str) -> ReadableFile:
        """Return the file with its text, waiting for its extraction until ``deadline`` (monotonic seconds).

        Raises NotFound, Unprocessable when the file has no text, Conflict when the wait ends without it; the errors
        name ``param``.
        """
        poll_s = _FIRST_POLL_S
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
        place = -1 if after is None else await self._indexes.place(self._index(tenant), after, newest=newest_first)
        if place is None:
            raise NotFound("File not found.", param="after")
        start = place + 1
        count = limit + 1 if purpose is None else max(limit + 1, _LOOKED_AT)
        found = list[FileObject]()
        while len(found) <= limit:
            ids = await self._indexes.ids(self._index(tenant), start=start, most=count, newest=newest_first)
            if not ids:
                break
            start += len(ids)
            files = [stored.file for stored in await self._found(tenant, ids)]
            found += [file for file in files if purpose in (None, file.purpose)]
        data = found[:limit]
        return FilePage.of(data, [file.id for file in data], has_more=len(found) > limit)

    async def delete(self, tenant: str, file_id: str) -> FileDeleted:
        """Delete the file and its text; a running read keeps the text until it ends. Raises NotFound."""
        job = await self.job(tenant, file_id)
        for also in self._first:
            await also(tenant, file_id)
        _, last = await self.queue.forget(file_id, file_id)
        await self._indexes.remove(FILES_EXPIRING, f"{tenant} {file_id}")
        await self.blobs.release(job.raw, holder=f"file:{file_id}")
        if last and (text := StoredFile.model_validate_json(last).text):  # its extraction may have ended meanwhile
            await self.blobs.release(text, holder=f"text:{file_id}")
        return FileDeleted(id=file_id)

    async def delete_expired(self) -> None:
        """Delete expired files."""
        for line in await self._indexes.due(FILES_EXPIRING, time.time(), most=100):
            tenant, file_id = line.split(" ")
            try:
                await self.delete(tenant, file_id)
            except NotFound:
                await self._indexes.remove(FILES_EXPIRING, line)

    def _index(self, tenant: str) -> str:
        return self._parts.of_name(tenant).key("files", tenant)

    async def _found(self, tenant: str, ids: Sequence[str]) -> list[StoredFile]:
        rows = await self.queue.jobs.some(ids, ["tenant", "record"])
        return [StoredFile.model_validate_json(record) for owner, record in rows if record and owner == tenant]
