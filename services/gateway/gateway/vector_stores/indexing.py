"""The worker's part: cuts a file's text into chunks, which the memory store embeds and indexes."""

import asyncio
import codecs
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final, Literal

from gateway.files import PAGE_END
from gateway.queue import Hold, JobGone, JobResult, Lease
from gateway.vector_stores.records import NO_JOB, Attached
from gateway.vector_stores.schemas import LastError, StaticChunks
from gateway.vector_stores.slice import IndexJob, VectorStores, chunks_of_file
from memloop.chunking import EstimatingSplitter
from memloop.wire.errors import MemloopError, NotFound, Unprocessable
from memloop.wire.memory import MAX_TEXT_CHARS, MemoryDraft, StoreAdd

_LONGEST: Final = MAX_TEXT_CHARS // 2
"""The characters of a piece: with its overlap it fits the memory store's longest text."""


def chunks_of(blocks: Iterable[str], size: StaticChunks) -> Iterator[str]:
    """Yield the chunks of a text that arrives in blocks; blank ones are left out. CPU work: run it in a thread.

    Each holds at most ``max_chunk_size_tokens`` estimated tokens, of which the first repeat the end of the chunk
    before. Tokens are estimated, because no engine need be there for a search.
    """
    step = size.max_chunk_size_tokens - size.chunk_overlap_tokens
    before = ""
    for piece in _pieces(blocks, step):
        if (chunk := (_end_of(before, size.chunk_overlap_tokens / step) + piece).strip()) and piece.strip():
            yield chunk
        before = piece


def _pieces(blocks: Iterable[str], tokens: int) -> Iterator[str]:
    for chunk in EstimatingSplitter().stream(blocks, chunk_tokens=tokens):
        text = chunk.text.replace(PAGE_END, "\n")
        for start in range(0, len(text), _LONGEST):
            yield text[start : start + _LONGEST]


def _end_of(text: str, share: float) -> str:
    """Return the end of the text, from the beginning of a word if there is one."""
    start = len(text) - int(len(text) * share)
    if start == 0:
        return text
    end = text[start:]
    _, space, rest = end.partition(" ")
    return rest if space else end


_AT_ONCE: Final = 64
_KEEP_MS: Final = 3600 * 1000
_FIRST: Final = datetime(1870, 1, 1, tzinfo=UTC)
_BETWEEN: Final = timedelta(hours=2)
"""Files are this far apart in the order of texts, so that a search sees each file as one conversation of its own.

The times mean nothing: they lie where no question names a date.
"""


@dataclass(frozen=True, slots=True)
class IndexHandler:
    """Indexes files of vector stores. A file that cannot be read, or does not fit, becomes ``failed``."""

    vector_stores: VectorStores

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Index the file. A replay writes nothing twice."""
        job = await self.vector_stores.queue.jobs.leased(lease, IndexJob)
        try:
            attached = await self._attached(job)
            [file] = await self.vector_stores.files.readable(job.tenant, [job.file_id], param="file_id")
        except NotFound:
            return await self._gone(job)
        except Unprocessable as error:
            return await self._failed(job, "unsupported_file", error.message)
        outcome = await self.vector_stores.records.change(job.tenant, attached, usage_bytes=file.text.size_bytes)
        if outcome == "full":
            return await self._failed(job, "invalid_file", "The text does not fit in the vector store.")
        blocks = self.vector_stores.files.stored().blobs.storage.blocks(file.text.place)
        chunks = chunks_of(codecs.iterdecode(blocks, "utf-8"), attached.file.chunking_strategy.static)
        if job.again:
            await self._erase(job)
        number = 0
        while some := await asyncio.to_thread(lambda: list(islice(chunks, _AT_ONCE))):
            await hold.check()
            try:
                attached = await self._attached(job)
            except NotFound:
                return await self._gone(job)
            clean = await self.vector_stores.clean(job.tenant, [*some])
            texts = [str(one) for one in clean] if isinstance(clean, list) else []
            parts = ((f"{attached.filename[:200]}, part {part}", text) for part, text in enumerate(texts, number + 1))
            await self.vector_stores.store.add(
                StoreAdd(
                    namespace=chunks_of_file(job.tenant, job.vector_store_id, job.file_id),
                    drafts=tuple(MemoryDraft(key=key, value=text) for key, text in parts),
                    timestamp=_FIRST + attached.place * _BETWEEN,
                    event_id=f"{job.job}:{number}",
                )
            )
            number += len(some)
        if await self.vector_stores.records.change(job.tenant, attached, status="completed") != "changed":
            return await self._gone(job)
        return JobResult("completed", "{}", keep_ms=_KEEP_MS)

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """Mark the file as failed."""
        del attempts
        return await self._failed(
            await self.vector_stores.queue.jobs.leased(lease, IndexJob), "server_error", error.message
        )

    async def cancelled(self, lease: Lease) -> JobResult:
        """Raise JobGone: a cancelled file is taken from its job, which goes on."""
        raise JobGone(lease.job_id)

    async def _attached(self, job: IndexJob) -> Attached:
        """Return the file's record. Raises NotFound when it is gone, or another job's."""
        found = await self.vector_stores.records.file(job.tenant, job.vector_store_id, job.file_id)
        if found.job != job.job:
            raise NotFound("The file is indexed by another job.")
        return found

    async def _gone(self, job: IndexJob) -> JobResult:
        """End the job of a file that was taken out, cancelled or attached again: only the latter's chunks stay."""
        ended = JobResult("completed", "{}", keep_ms=_KEEP_MS)
        with suppress(NotFound):
            if (await self.vector_stores.records.file(job.tenant, job.vector_store_id, job.file_id)).job != NO_JOB:
                return ended
        await self._erase(job)
        return ended

    async def _failed(
        self, job: IndexJob, code: Literal["server_error", "unsupported_file", "invalid_file"], reason: str
    ) -> JobResult:
        try:
            attached = await self._attached(job)
        except NotFound:
            return await self._gone(job)
        await self._erase(job)
        why = LastError(code=code, message=reason)
        await self.vector_stores.records.change(job.tenant, attached, status="failed", usage_bytes=0, last_error=why)
        return JobResult("failed", "{}", keep_ms=_KEEP_MS)

    async def _erase(self, job: IndexJob) -> None:
        await self.vector_stores.store.erase(chunks_of_file(job.tenant, job.vector_store_id, job.file_id))
