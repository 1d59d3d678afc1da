"""Finds a read's document, in the request or in the storage, and the evidence in it: places with file and page.

The document of a background read goes to the storage, unless it is short: the state would hold it in memory for as
long as the read waits and runs. A file's text is in the storage already, and the read holds it until its end.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from gateway.files import Blob, FileRecords, store_text, stored_chunks, utf8_blocks
from gateway.long_read.collections import open_collection
from gateway.long_read.places import InBody, InStorage, ReadDocument
from gateway.long_read.plan import ReadingPlan
from gateway.long_read.progress import ReadAccount
from gateway.long_read.records import ReadJob
from memloop.evidence import Finding, Similarity, TextSpan, evidence_for, with_similar
from memloop.ports import Splitter
from memloop.wire.errors import MemloopError, TooLarge, Unavailable
from memloop.wire.long_read import Document, Evidence
from memloop.wire.store_requests import Comparison, StoreSimilarities
from memloop_clients import StoreClient

SHORT_CHARS: Final = 1 << 18


async def held(job: ReadJob, files: FileRecords | None) -> ReadJob:
    """Secure the job's document: hold the file's text, or move a long document from the request to the storage.

    A foreground read keeps the document of its body. Raises TooLarge over the tenant's quota, and holds nothing then.
    """
    document = job.request.document.text or ""
    if files is not None and job.blobs:
        try:
            for blob in job.blobs:
                await files.blobs.hold(blob, holder=_holder(job.read_id))
        except TooLarge:
            await release_document(job.read_id, job.blobs, files)
            raise
    elif files is not None and job.request.background and len(document) > SHORT_CHARS:
        text = await store_text(files.blobs, job.tenant, utf8_blocks(document), holder=_holder(job.read_id))
        request = job.request.model_copy(update={"document": Document(file_id=job.read_id)})
        return job.model_copy(update={"text": text, "request": request})
    return job


async def release_document(read_id: str, blobs: Sequence[Blob], files: FileRecords | None) -> None:
    """Release the document of a read that is over or refused.

    A worker leaves that to the sweep: it may die before the job ends.
    """
    if files is None:
        return
    for blob in blobs:
        await files.blobs.release(blob, holder=_holder(read_id))


async def document_of(
    job: ReadJob, plan: ReadingPlan, *, splitter: Splitter, files: FileRecords | None, keeps_index: bool = True
) -> ReadDocument:
    """Return the document in chunks. Raises NotFound when it is deleted, Unavailable without the storage.

    Several files raise as ``open_collection`` does. With ``keeps_index`` the storage keeps where the chunks end.
    """
    chunk_tokens = plan.budget.chunk_tokens
    if not job.blobs:
        text = job.request.document.text or ""
        return InBody(await asyncio.to_thread(splitter.split, text, chunk_tokens=chunk_tokens))
    if files is None:
        raise Unavailable("This process has no storage to read the document from (MEMLOOP_STORAGE_URL).")
    storage = files.blobs.storage
    if job.text is None:
        return await open_collection(storage, job.files, splitter, chunk_tokens=chunk_tokens, keeps_index=keeps_index)
    chunks = await stored_chunks(storage, job.text, splitter, chunk_tokens=chunk_tokens, keeps_index=keeps_index)
    return InStorage(chunks, job.files[0] if job.files else None)


def _holder(read_id: str) -> str:
    return f"read:{read_id}"


_LOG = logging.getLogger(__name__)
_DIGITS: Final = 4


async def cite(account: ReadAccount, document: ReadDocument, similarity: Similarity | None = None) -> None:
    """Add the evidence of every question to the record. Raises the errors of loading a chunk.

    Without ``similarity``, or when it fails, no statement has a similar sentence.
    """
    for number, output in enumerate(account.outputs):
        findings: Sequence[Finding] = await evidence_for(
            output.question, memory=account.found_memory(number), answer=output.output_text, chunks=document.plain
        )
        if similarity is not None:
            try:
                findings = await with_similar(findings, document.plain, similarity)
            except MemloopError as error:
                _LOG.warning("evidence has no similar sentences: %s", error.message)
        evidence: list[Evidence] = []
        for finding in findings:
            plain = Evidence(statement=finding.statement, source=finding.source, supported=finding.supported)
            if (similar := finding.similar) is not None:
                found = {"similar": True, "similarity": round(similar.similarity, _DIGITS)}
                evidence.append(await _placed(plain.model_copy(update=found), similar.span, document))
            elif not finding.spans:
                evidence.append(plain)
            evidence += [await _placed(plain, span, document) for span in finding.spans]
        account.cite(number, tuple(evidence))


def similarity_of(store: StoreClient) -> Similarity:
    """Return the similarity by the store's embedding model."""

    async def cosines(pairs: Sequence[tuple[str, Sequence[str]]]) -> Sequence[Sequence[float]]:
        asked = [Comparison(statement=statement, passages=tuple(passages)) for statement, passages in pairs]
        return (await store.similarities(StoreSimilarities(comparisons=tuple(asked)))).similarities

    return cosines


async def _placed(entry: Evidence, span: TextSpan, document: ReadDocument) -> Evidence:
    place = await document.place(span)
    return entry.model_copy(update={"text": span.text, **asdict(place)})
