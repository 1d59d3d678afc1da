"""``/v1/long-read``: read a document of any length, at once, as a stream of events, or in the background."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from gateway.access import Allowance, AllowanceDep, AskingDep, BatchRoom, PrincipalDep, namespace_named, needs
from gateway.idempotency import Attempt, refuse_key_of_stream, subject_of_read
from gateway.long_read.admission import admitted_read, forget_read, opened_read
from gateway.long_read.documents import document_of, held, release_document
from gateway.long_read.hosts import ForegroundRead
from gateway.long_read.plan import estimate
from gateway.long_read.reading import Reading, ReadingDep, sent
from gateway.long_read.records import ReadDeleted, ReadJob, ReadPage
from gateway.long_read.run import new_record
from memloop.wire.errors import Erased, MemloopError, RateLimited
from memloop.wire.long_read import Estimate, LongRead, LongReadRequest, ReadEvent
from memloop_service import ERRORS
from memloop_service.http import (
    Awaited,
    ClientGone,
    EventStream,
    Outlet,
    body_of,
    data_event,
    error_event,
    json_response,
    read_ours,
    streams,
)

router = APIRouter(prefix="/v1/long-read", tags=["long-read"], dependencies=[needs("long-read")], responses=ERRORS)


@router.post(
    "",
    response_model=LongRead,
    dependencies=[BatchRoom],
    responses={**streams(LongRead), 202: {"description": "Queued", "model": LongRead}},
    openapi_extra=body_of(LongReadRequest),
)
async def create_read(
    request: Request, reading: ReadingDep, principal: PrincipalDep, allowance: AllowanceDep
) -> Response:
    """Read a document: the answer (200), a stream of events (``stream``), or a queued read (``background``, 202)."""
    asked = await read_ours(request, LongReadRequest)
    named = namespace_named(principal, asked.metadata, request.headers)
    admitted = await admitted_read(asked, reading, principal, named=named)

    def id_of(attempt: Attempt) -> str:
        return f"lr_{attempt.id_of()}"

    async def read(attempt: Attempt) -> Response:
        known = admitted.named(id_of(attempt))
        stored_tokens = sum(blob.size_bytes for blob in known.job.blobs) // 2  # in prose one takes two bytes or more
        await allowance.admit(*asked.asked, asked.document.text, more_tokens=stored_tokens)
        if asked.background:
            return await _queued(known.job, reading)
        read = await opened_read(known, reading)
        if known.job.request.stream:
            aborted = reading.backend.metrics.upstream_abort.inc
            source = partial(_send_run, read, allowance)
            return EventStream(source, heartbeat_s=reading.backend.heartbeat_s, on_abandoned=aborted)
        try:
            async with Awaited(request.receive):
                return json_response(await read.run())
        except ClientGone:
            reading.backend.metrics.upstream_abort.inc()
            raise
        finally:
            allowance.spend(read.used_tokens)

    if asked.stream:
        refuse_key_of_stream(request)
    return await reading.memory.idempotency.once(
        request, principal, read, owners=admitted.job.owners, also=lambda attempt: subject_of_read(id_of(attempt))
    )


@router.post("/estimate", dependencies=[BatchRoom], openapi_extra=body_of(LongReadRequest))
async def estimate_read(asking: AskingDep, reading: ReadingDep) -> Estimate:
    """The most that a read would cost. Nothing is read or stored."""
    asked = await asking.body(LongReadRequest)
    admitted = await admitted_read(asked, reading, asking.principal)
    splitter = admitted.tools.splitter
    files = reading.files.records
    document = await document_of(admitted.job, admitted.plan, splitter=splitter, files=files, keeps_index=False)
    return await asyncio.to_thread(estimate, asked, admitted.plan, document.chunks, splitter)


@router.get("")
async def list_reads(
    reading: ReadingDep,
    principal: PrincipalDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    after: Annotated[str | None, Query(max_length=64)] = None,
) -> ReadPage:
    """The tenant's reads, newest first."""
    return await reading.records.page(principal.tenant, limit=limit, after=after)


@router.get("/{read_id}", response_model=LongRead, responses=streams(LongRead))
async def get_read(
    read_id: str,
    reading: ReadingDep,
    principal: PrincipalDep,
    stream: bool = False,
    starting_after: Annotated[int, Query(ge=-1)] = -1,
) -> Response:
    """One read; with ``stream`` its events from ``starting_after`` on, to its end."""
    if not stream:
        return json_response(await reading.records.get(principal.tenant, read_id))
    with ExitStack() as seat:
        seat.enter_context(reading.followers.seat(principal.tenant))
        read = await reading.records.get(principal.tenant, read_id)
        return _followed(reading.followers.follow(read, starting_after=starting_after), reading, seat)


@router.post("/{read_id}/cancel")
async def cancel_read(read_id: str, reading: ReadingDep, principal: PrincipalDep) -> LongRead:
    """Stop a read; harmless when it is over."""
    return await reading.records.cancel(principal.tenant, read_id)


@router.delete("/{read_id}")
async def delete_read(read_id: str, reading: ReadingDep, principal: PrincipalDep) -> ReadDeleted:
    """Delete a read, its document and its events; a running one stops."""
    return await forget_read(principal.tenant, read_id, reading)


async def _queued(job: ReadJob, reading: Reading) -> Response:
    with ExitStack() as seat:
        if job.request.stream:
            seat.enter_context(reading.followers.seat(job.tenant))
        job = await held(job, reading.files.records)
        record = new_record(job)
        try:
            await reading.records.enqueue(job, record)
        except (RateLimited, Erased):
            await release_document(job.read_id, job.blobs, reading.files.records)
            raise
        if job.request.stream:
            return _followed(reading.followers.follow(record), reading, seat)
    return json_response(record, status=202)


def _followed(events: AsyncGenerator[ReadEvent, None], reading: Reading, seat: ExitStack) -> Response:
    return sent(events, _event, seat=seat.pop_all(), heartbeat_s=reading.backend.heartbeat_s)


async def _send_run(read: ForegroundRead, allowance: Allowance, out: Outlet) -> None:
    """Send the events of a read that runs only as long as somebody takes them."""
    waiting: asyncio.Queue[ReadEvent | None] = asyncio.Queue()
    task = asyncio.create_task(read.run(waiting.put))
    task.add_done_callback(lambda _: waiting.put_nowait(None))
    try:
        while (event := await waiting.get()) is not None:
            await out.send(_event(event))
        fault = task.exception()
        if fault is not None and not isinstance(fault, MemloopError):  # a failed read was the stream's last event
            await out.send(error_event(MemloopError("The read ended early: internal error.")))
    except MemloopError as error:
        await out.send(error_event(error))
    finally:
        task.cancel()
        await asyncio.wait({task})
        allowance.spend(read.used_tokens)


def _event(event: ReadEvent) -> bytes:
    return data_event(event.model_dump_json(exclude_none=True).encode(), kind=event.type)
