"""The worker's handler for ``/v1/files``: extracts the text of uploaded files."""

from contextlib import aclosing
from dataclasses import dataclass

from gateway.files.extraction import ExtractionRules, Unreadable, extracted
from gateway.files.records import FileJob, FileRecords, StoredFile
from gateway.files.texts import store_text
from gateway.queue import Hold, JobGone, JobResult, Lease
from memloop.wire.errors import MemloopError, TooLarge


@dataclass(frozen=True, slots=True)
class FileHandler:
    """Extracts texts. A file without text gets the status ``error`` and a reason; the client may delete it."""

    records: FileRecords
    rules: ExtractionRules

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Return the file with its text, or with the reason why it has none."""
        job, notes = await self._job(lease), list[str]()
        try:
            raw = self.records.blobs.storage.stream(job.raw.place)
            async with aclosing(raw):
                limits = self.rules.for_size(job.raw.size_bytes)
                blocks = extracted(raw, name=job.file.filename, media_type=job.media_type, limits=limits, notes=notes)
                async with aclosing(blocks):
                    text = await store_text(self.records.blobs, job.tenant, blocks, holder=_holder(job))
        except (Unreadable, TooLarge) as error:
            return _failed(job, str(error))
        try:
            await hold.check()
        except BaseException:
            await self.records.blobs.release(text, holder=_holder(job))
            raise
        file = job.file.model_copy(update={"status": "processed", "status_details": "; ".join(notes) or None})
        return _ending("completed", StoredFile(file=file, text=text, owner=job.owner))

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """Mark the file as unreadable after a bug of ours or a long storage outage."""
        del attempts
        return _failed(await self._job(lease), f"text extraction failed: {error.message}")

    async def cancelled(self, lease: Lease) -> JobResult:
        """Raise JobGone: files are deleted, never cancelled."""
        raise JobGone(lease.job_id)

    async def _job(self, lease: Lease) -> FileJob:
        job = await self.records.payload(lease.job_id)
        if job is None:
            raise JobGone(lease.job_id)
        return job


def _holder(job: FileJob) -> str:
    return f"text:{job.file.id}"


def _failed(job: FileJob, reason: str) -> JobResult:
    file = job.file.model_copy(update={"status": "error", "status_details": reason})
    return _ending("failed", StoredFile(file=file, owner=job.owner))


def _ending(status: str, stored: StoredFile) -> JobResult:
    return JobResult(status, stored.model_dump_json(), keep_ms=0)
