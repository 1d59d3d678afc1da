"""Runs one long read, for a request that waits and for the worker alike, and says every step as an event.

The reading itself is :func:`memloop.loops.memagent.read_document` or
:func:`memloop.loops.memreread.reread_document`, with a budget around a journal around the engine. A budget that is
spent ends the read as ``incomplete``: one closing call answers from the memory as it stands.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.jobs import Jobs
from gateway.metrics import Metrics
from gateway.read_records import ReadJob, terminal_event
from gateway.reading_plan import ReadingPlan, cut, plan_read
from gateway.services import Services
from memloop.loops.budget import Budgeted, BudgetSpent
from memloop.loops.cost import max_calls
from memloop.loops.journal import Journaled
from memloop.loops.memagent import read_document
from memloop.loops.memreread import reread_document
from memloop.loops.reader import answer
from memloop.loops.results import ReadResult
from memloop.loops.steps import Answered, ChunkRead, Integrated, ReadStep, RereadStarted, SubAnswered
from memloop.ports import ChatModel, Checkpoints, Chunks, Splitter
from memloop.profiles import Profile
from memloop.wire.errors import DependencyError, MemloopError
from memloop.wire.long_read import IncompleteDetails, LongRead, Progress, ReadEvent, ReadUsage, SubQuestion
from memloop.wire.memory import MAX_TEXT_CHARS, Namespace, Source, Usage

_CLOSING_ANSWER_S = 60.0
Publish = Callable[[ReadEvent, LongRead], Awaitable[None]]
"""Called with every event and the record as it stands with it, in order."""


@dataclass(frozen=True, slots=True)
class ReadingTools:
    """What reads work with. ``max_chars`` is the longest document."""

    model: ChatModel
    profile: Profile
    splitter: Splitter
    jobs: Jobs
    metrics: Metrics
    max_chars: int

    @classmethod
    def of(cls, services: Services, model: ChatModel) -> "ReadingTools":
        """The process's parts, with the model that reads."""
        return cls(
            model=model,
            profile=services.profile,
            splitter=services.splitter,
            jobs=services.jobs,
            metrics=services.metrics,
            max_chars=services.settings.max_document_chars,
        )


def new_record(job: ReadJob) -> LongRead:
    """The record of a read that nobody has begun."""
    request = job.request
    return LongRead(
        id=job.read_id,
        status="queued",
        created_at=int(time.time()),
        model=request.model,
        strategy=request.strategy,
        progress=Progress(passes_max=_passes_max(job)),
        metadata=request.metadata,
    )


async def run_read(
    job: ReadJob,
    record: LongRead,
    *,
    tools: ReadingTools,
    checkpoints: Checkpoints,
    publish: Publish,
    started_at: float,
    first_sequence: int,
) -> LongRead:
    """The finished record, completed or incomplete; its terminal event is published.

    ``started_at`` (epoch seconds) is when the first run began: the deadline counts from there. Raises what the
    engine, the journal and ``publish`` raise, and Unprocessable for a request that does not fit the model.
    """
    plan = await asyncio.to_thread(
        plan_read, job.request, profile=tools.profile, splitter=tools.splitter, max_chars=tools.max_chars
    )
    chunks = await asyncio.to_thread(cut, job.request.document.text or "", plan, tools.splitter)
    account = _Account(record, chunks, plan, tools, publish, first_sequence)
    with tools.metrics.longread_active.track_inprogress():
        await account.begin()
        journaled = Journaled(tools.model, checkpoints)
        try:
            result = await _read(job, chunks, plan, _budgeted(journaled, job, len(chunks), started_at), account)
        except BudgetSpent as spent:
            return await account.close(await _partial(job, plan, journaled, account, spent))
    if job.request.save_to_memory is not None:
        await save_memory(job, result.memory, tools.jobs)
    return await account.close(account.completed(result))


async def _read(job: ReadJob, chunks: Chunks, plan: ReadingPlan, model: ChatModel, account: "_Account") -> ReadResult:
    request = job.request
    if request.strategy == "memagent":
        return await read_document(request.question, chunks, model=model, profile=plan.profile, report=account.report)
    return await reread_document(
        request.question,
        chunks,
        model=model,
        profile=plan.profile,
        max_rereads=request.max_rereads,
        report=account.report,
    )


def _budgeted(model: ChatModel, job: ReadJob, chunks: int, started_at: float) -> Budgeted:
    """The read's limits. When the calls may not suffice, one of them is kept back for the closing answer."""
    request = job.request
    calls = request.max_llm_calls
    if calls is not None and calls < max_calls(request.strategy, chunks, max_rereads=request.max_rereads):
        calls -= 1
    left_s = None if request.deadline_s is None else max(0.0, request.deadline_s - (time.time() - started_at))
    return Budgeted(model, max_llm_calls=calls, deadline_s=left_s)


async def _partial(
    job: ReadJob, plan: ReadingPlan, model: ChatModel, account: "_Account", spent: BudgetSpent
) -> LongRead:
    """The incomplete record, with the answer that the memory gives so far (none when nothing was read)."""
    if account.memory == plan.profile.empty_memory:
        return account.incomplete("", spent)
    try:
        async with asyncio.timeout(_CLOSING_ANSWER_S):
            reply = await answer(job.request.question, account.memory, model=model, profile=plan.profile)
    except (DependencyError, TimeoutError):
        return account.incomplete("", spent)
    await account.report(Answered(reply.answer, reply.boxed, reply.usage))
    return account.incomplete(reply.answer, spent)


async def save_memory(job: ReadJob, memory: str, jobs: Jobs) -> None:
    """Queue the read's memory as a write of its own, once for one read."""
    save = job.request.save_to_memory
    if save is None or not memory.strip():
        return
    parts = [memory[start : start + MAX_TEXT_CHARS] for start in range(0, len(memory), MAX_TEXT_CHARS)]
    await jobs.enqueue_memory_write(
        Namespace(tenant=job.tenant, **save.model_dump()),
        [Source(role="assistant", content=part) for part in parts],
        infer=False,
        key=job.request.question,
        metadata={"long_read_id": job.read_id},
        event_id=f"evt_{hashlib.sha256(job.read_id.encode()).hexdigest()[:32]}",
    )


def failed(record: LongRead, error: MemloopError) -> LongRead:
    """The record of a read that failed."""
    body = error.envelope().error
    return record.model_copy(update={"status": "failed", "completed_at": int(time.time()), "error": body})


def cancelled(record: LongRead) -> LongRead:
    """The record of a read that was stopped."""
    return record.model_copy(update={"status": "cancelled", "completed_at": int(time.time())})


class _Account:
    """Turns the loop's steps into events, and keeps the record as it stands."""

    def __init__(
        self,
        record: LongRead,
        chunks: Chunks,
        plan: ReadingPlan,
        tools: ReadingTools,
        publish: Publish,
        first_sequence: int,
    ) -> None:
        self._record = record
        self._chunks = chunks
        self._metrics = tools.metrics
        self._publish = publish
        self._next = first_sequence
        self._usage = Usage()
        self._last_step = time.monotonic()
        self.memory = plan.profile.empty_memory
        """The root memory."""

    async def begin(self) -> None:
        progress = self._record.progress.model_copy(update={"chunks_total": len(self._chunks), "chunks_done": 0})
        self._record = self._record.model_copy(update={"status": "in_progress", "progress": progress})
        await self._say(type="long_read.in_progress", read=self._record)

    async def report(self, step: ReadStep) -> None:
        """The loop's callback."""
        if not isinstance(step, RereadStarted):
            self._usage += step.usage
            self._keep(usage=ReadUsage.of(self._usage))
        match step:
            case ChunkRead():
                await self._chunk_read(step)
            case RereadStarted(pass_number=number, question=question):
                self._progress(number, 0)
                await self._say(type="long_read.reread.started", question=question, progress=self._record.progress)
            case SubAnswered(question=question, answer=sub_answer):
                found = SubQuestion(question=question, answer=sub_answer)
                self._keep(subquestions=(*self._record.subquestions, found))
            case Integrated(memory=memory):
                self._root(memory)
            case Answered(answer=text):
                await self._say(type="long_read.output_text.delta", delta=text)
            case _:
                pass

    def completed(self, result: ReadResult) -> LongRead:
        """The record of a read that came to its end."""
        self._keep(memory=result.memory, usage=ReadUsage.of(result.usage), subquestions=result.subquestions)
        return self._ended("completed", result.answer)

    def incomplete(self, text: str, spent: BudgetSpent) -> LongRead:
        """The record of a read whose budget is spent."""
        self._keep(memory=self.memory, incomplete_details=IncompleteDetails(reason=spent.reason))
        return self._ended("incomplete", text)

    async def close(self, record: LongRead) -> LongRead:
        """Publish the terminal event; the record again."""
        await self._publish(terminal_event(record, self._next), record)
        return record

    async def _chunk_read(self, step: ChunkRead) -> None:
        if step.pass_number == 1:
            self._root(step.memory)
        self._progress(step.pass_number, step.chunk + 1)
        now = time.monotonic()
        self._metrics.longread_chunks.labels(self._record.strategy).inc()
        self._metrics.longread_chunk_seconds.observe(now - self._last_step)
        self._last_step = now
        await self._say(
            type="long_read.chunk.completed",
            progress=self._record.progress,
            chunk=step.chunk,
            memory=step.memory,
            tokens=self._chunks.span(step.chunk).tokens,
            question=step.question if step.pass_number > 1 else None,
        )

    def _root(self, memory: str) -> None:
        self.memory = memory
        self._keep(memory=memory)

    def _progress(self, pass_number: int, done: int) -> None:
        progress = self._record.progress.model_copy(update={"pass_": pass_number, "chunks_done": done})
        self._keep(progress=progress)

    def _keep(self, **values: object) -> None:
        self._record = self._record.model_copy(update=values)

    def _ended(self, status: str, text: str) -> LongRead:
        self._keep(status=status, output_text=text, completed_at=int(time.time()))
        return self._record

    async def _say(self, **values: object) -> None:
        event = ReadEvent.model_validate({**values, "sequence_number": self._next, "at": datetime.now(UTC)})
        self._next += 1
        await self._publish(event, self._record)


def _passes_max(job: ReadJob) -> int:
    return 1 + job.request.max_rereads if job.request.strategy == "memreread" else 1
