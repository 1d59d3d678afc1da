"""Adds the evidence of a finished read to its record: places in the document, with file and page."""

from collections.abc import AsyncIterator

from gateway.long_read.places import ReadDocument
from gateway.long_read.progress import ReadAccount
from memloop.evidence import Finding, evidence_for
from memloop.wire.long_read import Evidence


async def cite(account: ReadAccount, document: ReadDocument) -> None:
    """Add the evidence of every question to the record. Raises the errors of loading a chunk."""
    for number, output in enumerate(account.outputs):
        findings = await evidence_for(
            output.question, memory=account.found_memory(number), answer=output.output_text, chunks=document.plain
        )
        account.cite(number, tuple([entry for finding in findings async for entry in _entries(finding, document)]))


async def _entries(finding: Finding, document: ReadDocument) -> AsyncIterator[Evidence]:
    if not finding.spans:
        yield Evidence(statement=finding.statement, source=finding.source, supported=False)
    for span in finding.spans:
        place = await document.place(span)
        yield Evidence(
            statement=finding.statement,
            source=finding.source,
            supported=True,
            chunk=place.chunk,
            start=place.start,
            end=place.end,
            text=span.text,
            file_id=place.file_id,
            filename=place.filename,
            page=place.page,
        )
