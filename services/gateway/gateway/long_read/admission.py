"""Admits a long read, for the native route and the MCP tool; deletes one with everything that was derived from it."""

import secrets
from dataclasses import dataclass, replace

from gateway.access import Principal
from gateway.files import ReadableFile
from gateway.idempotency import subject_of_read
from gateway.long_read.documents import held, release_document
from gateway.long_read.hosts import ForegroundRead
from gateway.long_read.plan import ReadingPlan
from gateway.long_read.reading import Reading
from gateway.long_read.records import ReadDeleted, ReadJob
from gateway.long_read.run import ReadingTools
from memloop.wire.errors import Erased
from memloop.wire.long_read import LongReadRequest
from memloop.wire.memory import Namespace


@dataclass(frozen=True, slots=True)
class AdmittedRead:
    """A read that may be run, the plan it was checked against, and what it is to be run with."""

    job: ReadJob
    plan: ReadingPlan
    tools: ReadingTools

    def named(self, read_id: str) -> "AdmittedRead":
        """The same read under another id."""
        return replace(self, job=self.job.model_copy(update={"read_id": read_id}))


async def admitted_read(
    asked: LongReadRequest, reading: Reading, principal: Principal, *, named: Namespace | None = None
) -> AdmittedRead:
    """Check the request and plan the read. ``named`` is the user that the request names beside ``save_to_memory``.

    Raises Forbidden, NotFound for an unknown model, as ``plan_read`` does, and as ``readable`` for files.
    """
    began = await reading.memory.queue.lanes.newest_token()
    if asked.save_to_memory is not None:
        principal.require("memory:write", param="save_to_memory")
    if asked.webhook is not None:
        await reading.webhooks.rules.check_url(asked.webhook.url)
    read_id = f"lr_{secrets.token_hex(16)}"
    model = reading.backend.models.reading(asked.model, key=read_id)
    await model.look()
    tools = ReadingTools.of(reading, model, asked)
    plan = await tools.plan_of(asked)
    document, files = asked.document, tuple[ReadableFile, ...]()
    if document.files:
        param = "document.file_id" if document.file_ids is None else "document.file_ids"
        files = await reading.files.readable(principal.tenant, document.files, param=param)
    saves = None if asked.save_to_memory is None else asked.save_to_memory.namespace(principal.tenant)
    owners = dict.fromkeys(filter(None, (saves, named, *(file.owner for file in files))))
    job = ReadJob(
        read_id=read_id,
        tenant=principal.tenant,
        model=model.id,
        request=asked,
        text=files[0].text if len(files) == 1 else None,
        files=files,
        owners=tuple(owners),
        began=began,
    )
    return AdmittedRead(job, plan, tools)


async def opened_read(admitted: AdmittedRead, reading: Reading) -> ForegroundRead:
    """Enter the read among the tenant's; the caller runs it. Raises Unavailable, Erased."""
    job = await held(admitted.job, reading.files.records)
    read = ForegroundRead(job, admitted.plan, admitted.tools)
    try:
        await read.open()
    except Erased:
        await release_document(job.read_id, job.blobs, reading.files.records)
        raise
    return read


async def forget_read(tenant: str, read_id: str, reading: Reading) -> ReadDeleted:
    """Delete record, document, events, webhook, kept answers and trace; a running read stops. Raises NotFound."""
    records = reading.records
    await records.get(tenant, read_id)
    blobs = await records.blobs(read_id)
    deleted = await records.delete(tenant, read_id)
    await release_document(read_id, blobs, reading.files.records)
    await reading.memory.idempotency.forget(tenant, subject_of_read(read_id))
    await reading.memory.traces.records.forget_one(tenant, read_id)
    return deleted
