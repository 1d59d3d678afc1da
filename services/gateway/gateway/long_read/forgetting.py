"""Deletes a long read with all that was derived from it, for its client and for the erasure of one of its owners."""

from gateway.idempotency import subject_of_read
from gateway.long_read.documents import release_document
from gateway.long_read.reading import Reading
from gateway.long_read.records import ReadDeleted


async def forget_read(tenant: str, read_id: str, reading: Reading) -> ReadDeleted:
    """Delete record, document, events, webhook, kept answers and trace; a running read stops. Raises NotFound."""
    records = reading.records
    await records.get(tenant, read_id)
    job = await records.payload(read_id)
    deleted = await records.delete(tenant, read_id)
    if job is not None:
        await release_document(job, reading.files.records)
    await reading.memory.idempotency.forget(tenant, subject_of_read(read_id))
    await reading.memory.traces.records.forget_one(tenant, read_id)
    return deleted
