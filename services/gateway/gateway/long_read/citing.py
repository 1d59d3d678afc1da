"""The evidence of a read: what of its memories and answers the document says, and where."""

from collections.abc import Iterator

from gateway.long_read.progress import ReadAccount
from memloop.evidence import Finding, evidence_for
from memloop.ports import Chunks
from memloop.wire.long_read import Evidence


async def cite(account: ReadAccount, chunks: Chunks) -> None:
    """Add the evidence of every question to the record. Raises what loading a chunk raises."""
    for number, output in enumerate(account.outputs):
        findings = await evidence_for(
            output.question, memory=account.told(number), answer=output.output_text, chunks=chunks
        )
        account.cite(number, tuple(entry for finding in findings for entry in _entries(finding)))


def _entries(finding: Finding) -> Iterator[Evidence]:
    if not finding.spans:
        yield Evidence(statement=finding.statement, source=finding.source, supported=False)
    for span in finding.spans:
        yield Evidence(
            statement=finding.statement,
            source=finding.source,
            supported=True,
            chunk=span.chunk,
            start=span.start,
            end=span.end,
            text=span.text,
        )
