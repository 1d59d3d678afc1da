"""Adds the evidence of a finished read to its record: places in the document, with file and page."""

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Final

from gateway.long_read.places import ReadDocument
from gateway.long_read.progress import ReadAccount
from memloop.evidence import Finding, Similarity, TextSpan, evidence_for, with_similar
from memloop.wire.errors import MemloopError
from memloop.wire.long_read import Evidence
from memloop.wire.store_requests import Comparison, StoreSimilarities
from memloop_clients import StoreClient

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
            findings = await _with_similar(findings, document, similarity)
        account.cite(number, tuple([entry for finding in findings async for entry in _entries(finding, document)]))


def similarity_of(store: StoreClient) -> Similarity:
    """Return the similarity by the store's embedding model."""

    async def cosines(pairs: Sequence[tuple[str, Sequence[str]]]) -> Sequence[Sequence[float]]:
        asked = [Comparison(statement=statement, passages=tuple(passages)) for statement, passages in pairs]
        return (await store.similarities(StoreSimilarities(comparisons=tuple(asked)))).similarities

    return cosines


async def _with_similar(
    findings: Sequence[Finding], document: ReadDocument, similarity: Similarity
) -> Sequence[Finding]:
    try:
        return await with_similar(findings, document.plain, similarity)
    except MemloopError as error:
        _LOG.warning("evidence has no similar sentences: %s", error.message)
        return findings


async def _entries(finding: Finding, document: ReadDocument) -> AsyncIterator[Evidence]:
    plain = Evidence(statement=finding.statement, source=finding.source, supported=finding.supported)
    if (similar := finding.similar) is not None:
        found = {"similar": True, "similarity": round(similar.similarity, _DIGITS)}
        yield await _placed(plain.model_copy(update=found), similar.span, document)
    elif not finding.spans:
        yield plain
    for span in finding.spans:
        yield await _placed(plain, span, document)


async def _placed(entry: Evidence, span: TextSpan, document: ReadDocument) -> Evidence:
    place = await document.place(span)
    return entry.model_copy(
        update={
            "chunk": place.chunk,
            "start": place.start,
            "end": place.end,
            "text": span.text,
            "file_id": place.file_id,
            "filename": place.filename,
            "page": place.page,
        }
    )
