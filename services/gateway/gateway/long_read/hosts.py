"""Runs long reads for a waiting request and in the worker. Both call ``run_read``."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from gateway.long_read.documents import release_document
from gateway.long_read.plan import NamedModel, ReadingPlan
from gateway.long_read.progress import Publish
from gateway.long_read.reading import Reading
from gateway.long_read.records import TERMINAL, ReadJob, terminal_event
from gateway.long_read.run import ReadingTools, new_record, run_read
from gateway.queue import Hold, JobCancelled, JobGone, JobResult, JournalCheckpoints, Lease, is_outage
from memloop.chores import watched
from memloop.chunking import EstimatingSplitter
from memloop.ports import ChatModel, Completion, Prompt
from memloop.wire.errors import (
    ContextTruncated,
    DependencyError,
    EngineError,
    InvalidRequest,
    MemloopError,
    NotFound,
    NotSupported,
)
from memloop.wire.long_read import LongRead, ReadEvent

Emit = Callable[[ReadEvent], Awaitable[None]]
_DELETED = "The read was deleted while it ran."
_LOOK_S: Final = 1.0
"""How often a foreground read looks whether it was cancelled or deleted: one command to Redis each time."""


async def discard(event: ReadEvent) -> None:
    """Drop the event: an ``Emit`` without a receiver."""


class _Meter:
    """Counts the tokens that models use. Of a call that is cut off it counts the prompt, by estimate."""

    def __init__(self) -> None:
        self.tokens = 0

    def on(self, model: ChatModel) -> "_Metered":
        """Return the model with its calls counted."""
        return _Metered(model, self)


@dataclass(frozen=True, slots=True)
class _Metered:
    model: ChatModel
    meter: _Meter

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the model's reply."""
        try:
            completion = await self.model.complete(prompt)
        except asyncio.CancelledError:
            texts = "\n".join(message.text() for message in prompt.messages)
            self.meter.tokens += EstimatingSplitter().count(texts)
            raise
        self.meter.tokens += completion.usage.total_tokens
        return completion


class ForegroundRead:
    """A read whose client waits. It ends when the client leaves, and no worker resumes it."""

    def __init__(self, job: ReadJob, plan: ReadingPlan, tools: ReadingTools) -> None:
        self._job = job
        self._plan = plan
        self._meter = _Meter()
        judge = tools.judge and NamedModel(tools.judge.id, self._meter.on(tools.judge.model))
        self._tools = replace(tools, model=self._meter.on(tools.model), judge=judge)
        self._record = new_record(job, status="in_progress")
        self._next = 0

    @property
    def used_tokens(self) -> int:
        """What the engine has used for the read so far, however it ends."""
        return self._meter.tokens

    async def open(self) -> None:
        """Store the read, so that clients can get and cancel it. Raises Unavailable, Erased."""
        await self._tools.records.open(self._job, self._record)

    async def run(self, emit: Emit = discard) -> LongRead:
        """Run the read and return its final record; ``emit`` gets every event, the terminal one in any case.

        Raises the error that made it fail. Cancellation from outside (the client left) marks the read as cancelled.
        One that is cancelled or deleted by its id stops within about a second, also while the engine works.
        """

        async def publish(event: ReadEvent, record: LongRead) -> None:
            self._record = record
            try:
                await self._tools.records.publish(event, record, foreground=True)
            except JobCancelled:
                await send(event)
                raise
            except asyncio.CancelledError:
                self._next = event.sequence_number + 1  # the event may be stored
                raise
            await send(event)

        async def send(event: ReadEvent) -> None:
            self._next = event.sequence_number + 1
            await emit(event)

        try:
            reading = run_read(
                self._job,
                self._record,
                plan=self._plan,
                tools=self._tools,
                checkpoints=None,
                publish=publish,
                started_at=time.time(),
                first_sequence=0,
            )
            check = partial(self._tools.records.check, self._job.read_id)
            record = await watched(reading, check=check, every_s=_LOOK_S)
        except JobCancelled:
            return await self._end(self._record.ended("cancelled"), emit)
        except JobGone:
            await self._end(_failed(self._record, NotFound(_DELETED)), emit, outcome="cancelled")
            raise NotFound(_DELETED) from None
        except MemloopError as error:
            outcome = "failed" if error.http_status >= 500 else "refused"
            await self._end(_failed(self._record, error), emit, outcome=outcome)
            raise
        except asyncio.CancelledError:
            await asyncio.shield(self._end(self._record.ended("cancelled"), discard))
            raise
        finally:
            with suppress(DependencyError):
                await release_document(self._job.read_id, self._job.blobs, self._tools.files)
        self._tools.metrics.longread_ended.labels(record.status).inc()
        return record

    async def _end(self, record: LongRead, emit: Emit, outcome: str = "cancelled") -> LongRead:
        """Store and emit the end, as far as the state is reachable."""
        self._tools.metrics.longread_ended.labels(outcome).inc()
        event = terminal_event(record, self._next)
        with suppress(DependencyError, JobGone):
            await self._tools.records.publish(event, record, foreground=True)
        await emit(event)
        return record


class ReadHandler:
    """Runs the queued background reads in the worker."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._records = reading.records
        self._metrics = reading.backend.metrics

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Run the read from the end of its journal. A request that can never succeed fails without a retry."""
        del hold
        job = await self._reading.queue.jobs.leased(lease, ReadJob)
        if lease.starts > 1:
            self._metrics.longread_resumed.inc()
        try:
            return await self._ended(job, await self._read(job))
        except MemloopError as error:
            if not is_permanent(error):
                raise
            return await self._close(job, _failed(await self._stored(job), error), outcome="refused")

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """Mark the read as failed. Its document is deleted: the client sees the failure and can send it again."""
        del attempts
        job = await self._reading.queue.jobs.leased(lease, ReadJob)
        return await self._close(job, _failed(await self._stored(job), error))

    async def cancelled(self, lease: Lease) -> JobResult:
        """Mark the read as cancelled."""
        job = await self._reading.queue.jobs.leased(lease, ReadJob)
        return await self._close(job, (await self._stored(job)).ended("cancelled"))

    async def _read(self, job: ReadJob) -> LongRead:
        journal = self._reading.queue.journal(job.read_id)
        began = await journal.keep("started", repr(time.time()))
        created_at = (await self._stored(job)).created_at
        model = self._reading.backend.models.named(job.model)
        await model.look()
        tools = ReadingTools.of(self._reading, model, job.request)
        plan = await tools.plan_of(job.request)

        async with published_behind(partial(self._records.publish, foreground=False)) as publish:
            return await run_read(
                job,
                new_record(job, created_at=created_at),
                plan=plan,
                tools=tools,
                checkpoints=JournalCheckpoints(journal, scope="read"),
                publish=publish,
                started_at=float(began),
                first_sequence=1,
            )

    async def _stored(self, job: ReadJob) -> LongRead:
        try:
            return await self._records.get(job.tenant, job.read_id)
        except NotFound:
            raise JobGone(job.read_id) from None

    async def _close(self, job: ReadJob, record: LongRead, outcome: str | None = None) -> JobResult:
        await self._records.publish(await self._records.closing_event(record), record, foreground=False)
        return await self._ended(job, record, outcome)

    async def _ended(self, job: ReadJob, record: LongRead, outcome: str | None = None) -> JobResult:
        await self._records.notify(job, record)
        self._metrics.longread_ended.labels(outcome or record.status).inc()
        return JobResult(record.status, record.model_dump_json())


@asynccontextmanager
async def published_behind(publish: Publish) -> AsyncGenerator[Publish]:
    """Yield a ``publish`` that returns while its event is still on the way, one event at a time.

    Events keep their order; the failure of one is raised at the next. The terminal event is awaited, and so is the last
    event when the block ends in any other way. A reply is in the journal before its event exists, so a crash in between
    loses nothing: the next run publishes the event again.
    """
    going: asyncio.Task[None] | None = None

    async def settled() -> None:
        nonlocal going
        if going is not None:
            task, going = going, None
            await task

    async def behind(event: ReadEvent, record: LongRead) -> None:
        nonlocal going
        await settled()
        going = asyncio.ensure_future(publish(event, record))
        # Take note of its error, which nobody else hears of when the block is cancelled
        going.add_done_callback(lambda task: task.cancelled() or task.exception())
        if record.status in TERMINAL:
            await settled()

    try:
        yield behind
    finally:
        if going is not None:
            await asyncio.wait({going})


def _failed(record: LongRead, error: MemloopError) -> LongRead:
    return record.ended("failed", error.envelope().error)


def is_permanent(error: MemloopError) -> bool:
    """Return whether every attempt would fail alike: the request does not fit, or the engine rejects it.

    After a cut prompt the next attempt plans for a smaller window.
    """
    if isinstance(error, ContextTruncated):
        return False
    if isinstance(error, EngineError):
        return error.engine_status == 404 or not is_outage(error)
    return isinstance(error, InvalidRequest | NotFound | NotSupported)
