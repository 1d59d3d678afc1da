"""What every way to a long read does alike: the native route and the MCP tool."""

import asyncio
import secrets

from gateway.principal import Principal
from gateway.read_hosts import ForegroundRead
from gateway.read_records import ReadJob
from gateway.reading_plan import ReadingPlan, plan_read
from gateway.reads import ReadingTools
from gateway.services import Services
from memloop.wire.long_read import LongReadRequest


async def plan_of(asked: LongReadRequest, services: Services) -> ReadingPlan:
    """How it would be read. Raises Unprocessable, TooLarge, NotSupported for what cannot be."""
    return await asyncio.to_thread(
        plan_read,
        asked,
        profile=services.profile,
        splitter=services.splitter,
        max_chars=services.settings.max_document_chars,
    )


async def checked_job(asked: LongReadRequest, services: Services, principal: Principal) -> ReadJob:
    """The read as a job that can be run. Raises Forbidden, and as ``plan_of`` does."""
    if asked.save_to_memory is not None:
        principal.require("memory:write", param="save_to_memory")
    await plan_of(asked, services)
    return ReadJob(read_id=f"lr_{secrets.token_hex(16)}", tenant=principal.tenant, request=asked)


async def opened_read(job: ReadJob, services: Services) -> ForegroundRead:
    """The read, entered among the tenant's, to be run by the caller. Raises Unavailable."""
    read = ForegroundRead(job, ReadingTools.of(services, services.engine.of_model(job.request.model)))
    await read.open()
    return read
