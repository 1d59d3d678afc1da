"""The records of files, the worker's handler that extracts their texts, and the downloads, if clients may have any."""

import time
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, TypeAlias

from gateway.addresses import AddressRules
from gateway.extract import Unreadable
from gateway.files.blobs import Blob, Blobs
from gateway.files.download import Downloads
from gateway.files.extraction import ExtractionRules, extracted
from gateway.files.records import FileJob, FileRecords, ReadableFile, StoredFile
from gateway.files.storage import Storage
from gateway.queue import Hold, JobGone, JobResult, LaneQueue, Lease, QueueRules
from gateway.settings import GatewaySettings, networks_of
from memloop.wire.errors import DependencyError, MemloopError, NotSupported, TooLarge
from memloop_service import of_app
from memloop_state.contents import Quota
from memloop_state.link import State

FILES_QUEUE = "files"


@dataclass(frozen=True, slots=True)
class Files:
    """Files and their texts. ``wait_s`` bounds a wait for a text.

    ``records`` is None without configured storage, ``downloads`` unless the operator allows them.
    """

    records: FileRecords | None
    queue: LaneQueue
    downloads: Downloads | None
    max_bytes: int
    wait_s: float

    def stored(self) -> FileRecords:
        """Return the records. Raises NotSupported when no storage is configured."""
        if self.records is None:
            raise NotSupported("Files are disabled: no storage is configured (MEMLOOP_STORAGE_URL).")
        return self.records

    async def readable(self, tenant: str, file_ids: Sequence[str], *, param: str) -> tuple[ReadableFile, ...]:
        """Return the files once their texts are extracted; all waits together last ``wait_s``.

        Raises NotSupported, and as ``FileRecords.read_file`` does.
        """
        records, deadline = self.stored(), time.monotonic() + self.wait_s
        return tuple([await records.read_file(tenant, one, deadline=deadline, param=param) for one in file_ids])


def open_files(settings: GatewaySettings, state: State, rules: QueueRules) -> Files:
    """Build the slice from the settings."""
    queue = LaneQueue(state, FILES_QUEUE, rules=rules)
    records = None
    if settings.storage_url is not None:
        quota = Quota(settings.tenant_files, settings.tenant_storage_bytes)
        records = FileRecords(state, queue, Blobs(state, Storage.at(settings.storage_url), quota), quota)
    addresses = AddressRules(networks_of(settings.fetch_allow_networks))
    downloads = Downloads(addresses, settings.fetch_timeout_s) if settings.fetch_urls else None
    return Files(records, queue, downloads, settings.max_file_bytes, settings.file_wait_s)


FilesDep: TypeAlias = Annotated[Files, of_app("files")]


@dataclass(frozen=True, slots=True)
class FileHandler:
    """Extracts texts. A file without text gets the status ``error`` and a reason; the client may delete it."""

    records: FileRecords
    rules: ExtractionRules

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Return the file with its text, or with the reason why it has none."""
        job, notes = await self.records.queue.jobs.leased(lease, FileJob), list[str]()
        blobs = self.records.blobs
        try:
            raw = blobs.storage.stream(job.raw.place)
            async with aclosing(raw):
                limits = self.rules.for_size(job.raw.size_bytes)
                blocks = extracted(raw, name=job.file.filename, media_type=job.media_type, limits=limits, notes=notes)
                async with aclosing(blocks):
                    written = await blobs.written(job.tenant, blocks)
            let_go = partial(self._let_go, job, written)
            try:
                text = await blobs.claim(written, holder=f"text:{job.file.id}")
                await hold.check()
            except BaseException:
                await let_go()
                raise
        except (Unreadable, TooLarge) as error:
            return _failed(job, str(error))
        file = job.file.model_copy(update={"status": "processed", "status_details": "; ".join(notes) or None})
        done = _ending("completed", StoredFile(file=file, text=text, owner=job.owner))
        return replace(done, if_lost=let_go)

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """Mark the file as unreadable after a bug of ours or a long storage outage."""
        del attempts
        return _failed(await self.records.queue.jobs.leased(lease, FileJob), f"text extraction failed: {error.message}")

    async def cancelled(self, lease: Lease) -> JobResult:
        """Raise JobGone: files are deleted, never cancelled."""
        raise JobGone(lease.job_id)

    async def _let_go(self, job: FileJob, text: Blob) -> None:
        """Release the text of a file that was deleted meanwhile; if only the lease was lost, another worker has it."""
        with suppress(DependencyError):  # the sweep releases it later
            (status,) = await self.records.queue.jobs.get(job.file.id, "status")
            if not status:
                await self.records.blobs.release(text, holder=f"text:{job.file.id}")


def _failed(job: FileJob, reason: str) -> JobResult:
    file = job.file.model_copy(update={"status": "error", "status_details": reason})
    return _ending("failed", StoredFile(file=file, owner=job.owner))


def _ending(status: str, stored: StoredFile) -> JobResult:
    return JobResult(status, stored.model_dump_json(), keep_ms=0)
