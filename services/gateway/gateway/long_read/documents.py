"""Finds a read's document, in the request or in the storage.

The document of a background read goes to the storage, unless it is short: the state would hold it in memory for as
long as the read waits and runs. A file's text is in the storage already, and the read holds it until its end.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from gateway.files import Blob, FileRecords, store_text, stored_chunks, utf8_blocks
from gateway.long_read.collections import open_collection
from gateway.long_read.places import InBody, InStorage, ReadDocument
from gateway.long_read.plan import ReadingPlan, cut
from gateway.long_read.records import ReadJob
from memloop.ports import Splitter
from memloop.wire.errors import Unavailable
from memloop.wire.long_read import Document

SHORT_CHARS: Final = 1 << 18


async def held(job: ReadJob, files: FileRecords | None) -> ReadJob:
    """Secure the job's document: hold the file's text, or move a long document from the request to the storage.

    A foreground read keeps the document of its body. Raises TooLarge over the tenant's quota.
    """
    document = job.request.document.text or ""
    if files is not None and job.blobs:
        for blob in job.blobs:
            await files.blobs.hold(blob, holder=_holder(job))
    elif files is not None and job.request.background and len(document) > SHORT_CHARS:
        text = await store_text(files.blobs, job.tenant, utf8_blocks(document), holder=_holder(job))
        request = job.request.model_copy(update={"document": Document(file_id=job.read_id)})
        return job.model_copy(update={"text": text, "request": request})
    return job


async def release_document(job: ReadJob, files: FileRecords | None) -> None:
    """Release the document of a finished read. A worker leaves that to the sweep: it may die before the job ends."""
    if files is None:
        return
    for blob in job.blobs:
        await files.blobs.release(blob, holder=_holder(job))


async def document_of(
    job: ReadJob, plan: ReadingPlan, *, splitter: Splitter, files: FileRecords | None
) -> ReadDocument:
    """Return the document in chunks. Raises NotFound when it is deleted, Unavailable without the storage.

    Several files raise as ``open_collection`` does.
    """
    if not job.blobs:
        return InBody(await asyncio.to_thread(cut, job.request.document.text or "", plan, splitter))
    if files is None:
        raise Unavailable("This process has no storage to read the document from (MEMLOOP_STORAGE_URL).")
    storage, chunk_tokens = files.blobs.storage, plan.budget.chunk_tokens
    if job.text is None:
        return await open_collection(storage, job.files, splitter, chunk_tokens=chunk_tokens)
    chunks = await stored_chunks(storage, job.text, splitter, chunk_tokens=chunk_tokens)
    return InStorage(chunks, job.files[0] if job.files else None)


def tokens_at_most(blobs: Sequence[Blob]) -> int:
    """Estimate an upper bound for the tokens of stored texts: in prose a token takes two bytes or more."""
    return sum(blob.size_bytes for blob in blobs) // 2


def _holder(job: ReadJob) -> str:
    return f"read:{job.read_id}"
