"""What every way to a long read does alike: the native route and the MCP tool."""

import asyncio
import secrets

from gateway.access.principal import Principal
from gateway.files.blobs import Blob
from gateway.long_read.documents import held
from gateway.long_read.hosts import ForegroundRead
from gateway.long_read.plan import ReadingPlan, plan_read
from gateway.long_read.reading import Reading
from gateway.long_read.records import ReadJob
from gateway.long_read.run import ReadingTools
from memloop.wire.long_read import LongReadRequest


async def plan_of(asked: LongReadRequest, reading: Reading) -> ReadingPlan:
    """How it would be read. Raises Unprocessable, TooLarge, NotSupported for what cannot be."""
    return await asyncio.to_thread(
        plan_read,
        asked,
        profile=reading.backend.served.profile,
        splitter=reading.backend.served.splitter,
        max_chars=reading.max_chars,
    )


async def checked_job(asked: LongReadRequest, reading: Reading, principal: Principal) -> ReadJob:
    """The read as a job that can be run. Raises Forbidden, as ``plan_of`` does, and as ``text_of`` for a file."""
    if asked.save_to_memory is not None:
        principal.require("memory:write", param="save_to_memory")
    if asked.webhook is not None:
        reading.webhooks.rules.check_url(asked.webhook.url)
    await plan_of(asked, reading)
    text = await _text_of_file(asked, reading, principal)
    return ReadJob(read_id=f"lr_{secrets.token_hex(16)}", tenant=principal.tenant, request=asked, text=text)


async def opened_read(job: ReadJob, reading: Reading) -> ForegroundRead:
    """The read, entered among the tenant's, to be run by the caller. Raises Unavailable."""
    job = await held(job, reading.files.records)
    read = ForegroundRead(job, ReadingTools.of(reading, reading.backend.engines.of_model(job.request.model)))
    await read.open()
    return read


async def _text_of_file(asked: LongReadRequest, reading: Reading, principal: Principal) -> Blob | None:
    if asked.document.file_id is None:
        return None
    return await reading.files.text_of(principal.tenant, asked.document.file_id)
