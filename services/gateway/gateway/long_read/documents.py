"""Finds a read's document, in the request or in the storage.

The document of a background read goes to the storage, unless it is short: Redis would hold it in memory for as long as
the read waits and runs. A file's text is in the storage already, and the read holds it until its end.
"""

import asyncio
from typing import Final

from gateway.files.blobs import Blob
from gateway.files.records import FileRecords
from gateway.files.texts import store_text, stored_chunks, utf8_blocks
from gateway.long_read.plan import ReadingPlan, cut
from gateway.long_read.records import ReadJob
from memloop.ports import Chunks, Splitter
from memloop.wire.errors import Unavailable
from memloop.wire.long_read import Document

SHORT_CHARS: Final = 1 << 18


async def held(job: ReadJob, files: FileRecords | None) -> ReadJob:
    """Secure the job's document: hold the file's text, or move a long document from the request to the storage.

    A foreground read keeps the document of its body. Raises TooLarge over the tenant's quota.
    """
    document = job.request.document.text or ""
    if files is not None and job.text is not None:
        await files.blobs.hold(job.text, holder=_holder(job))
    elif files is not None and job.request.background and len(document) > SHORT_CHARS:
        text = await store_text(files.blobs, job.tenant, utf8_blocks(document), holder=_holder(job))
        request = job.request.model_copy(update={"document": Document(file_id=job.read_id)})
        return job.model_copy(update={"text": text, "request": request})
    return job


async def let_go(job: ReadJob, files: FileRecords | None) -> None:
    """Release the document of a finished read. A worker leaves that to the sweep: it may die before the job ends."""
    if job.text is not None and files is not None:
        await files.blobs.release(job.text, holder=_holder(job))


async def chunks_of(job: ReadJob, plan: ReadingPlan, *, splitter: Splitter, files: FileRecords | None) -> Chunks:
    """Return the document in chunks. Raises NotFound when it is deleted, Unavailable without the storage."""
    if job.text is None:
        return await asyncio.to_thread(cut, job.request.document.text or "", plan, splitter)
    if files is None:
        raise Unavailable("This process has no storage to read the document from (MEMLOOP_STORAGE_URL).")
    return await stored_chunks(files.blobs.storage, job.text, splitter, chunk_tokens=plan.budget.chunk_tokens)


def tokens_at_most(text: Blob | None) -> int:
    """Estimate an upper bound for a stored text's tokens: in prose a token takes two bytes or more."""
    return 0 if text is None else text.size_bytes // 2


def _holder(job: ReadJob) -> str:
    return f"read:{job.read_id}"
