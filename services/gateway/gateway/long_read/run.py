"""Runs one long read, for a waiting request and for the worker alike, and publishes every step as an event.

:func:`memloop.loops.memreread.read_questions` does the reading, with a budget around the engine. In the worker a
journal stands between the two. A spent budget ends the read as ``incomplete``: a closing call for each question answers
from its present memory.
"""

import asyncio
import hashlib
import time
from contextlib import suppress
from dataclasses import dataclass

from gateway.engine import Affine, LoopModel
from gateway.files import FileRecords
from gateway.long_read.documents import cite, document_of, similarity_of
from gateway.long_read.plan import JudgedApart, NamedModel, ReadingPlan, judged_by, plan_read
from gateway.long_read.progress import Publish, ReadAccount
from gateway.long_read.reading import Reading
from gateway.long_read.records import ReadJob, ReadRecords
from gateway.memory import MemoryJob, MemoryQueue, event_id
from gateway.metrics import Metrics
from gateway.traces import RecordedChunks, RecordedModel, Served, TraceKeeper
from memloop.evidence import Similarity
from memloop.loops.journal import Budgeted, BudgetSpent, max_calls
from memloop.loops.memreread import read_questions
from memloop.loops.reader import Reader, answer
from memloop.loops.steps import Answered
from memloop.ports import ChatModel, Checkpoints, Splitter
from memloop.profiles import Profile
from memloop.wire.errors import Conflict, DependencyError, NotFound
from memloop.wire.long_read import LongRead, LongReadRequest, Progress, ReadOutput, ReadStatus
from memloop.wire.memory import MAX_TEXT_CHARS, Source
from memloop_service.tracing import span

_CLOSING_ANSWER_S = 60.0


@dataclass(frozen=True, slots=True)
class ReadingTools:
    """The dependencies of one model's reads. ``max_chars`` is the longest document in a body.

    ``judge`` is a separate judging model, if there is one; the profile then holds that model's judge prompt.
    """

    model: ChatModel
    profile: Profile
    splitter: Splitter
    records: ReadRecords
    memory: MemoryQueue
    metrics: Metrics
    max_chars: int
    traces: TraceKeeper
    files: FileRecords | None = None
    judge: NamedModel | None = None
    similarity: Similarity | None = None

    @classmethod
    def of(cls, reading: Reading, reader: LoopModel, request: LongReadRequest) -> "ReadingTools":
        """Build the tools for a reading model. With ``parity`` it is its own judge, as published."""
        judge = reader if request.options.parity else reading.backend.models.judge_of(reader)
        metrics, apart = reading.backend.metrics, judge.id != reader.id
        return cls(
            model=reader.watched(metrics, operation="long_read"),
            judge=NamedModel(judge.id, judge.watched(metrics, operation="long_read")) if apart else None,
            profile=judged_by(reader.window.profile, judge.window.profile) if apart else reader.window.profile,
            splitter=reader.splitter,
            records=reading.records,
            memory=reading.memory.queue,
            metrics=metrics,
            max_chars=reading.max_chars,
            traces=reading.memory.traces,
            files=reading.files.records,
            similarity=similarity_of(reading.memory.store),
        )

    def asked_by(self, job: ReadJob, checkpoints: Checkpoints | None) -> ChatModel:
        """Return the model for a job; replies in the checkpoints are not requested again."""
        reader = NamedModel(job.model, self.model).journaled(checkpoints)
        asked = reader if self.judge is None else JudgedApart(reader, self.judge.journaled(checkpoints))
        return Affine(asked, f"{job.tenant}/{job.content}")

    async def plan_of(self, request: LongReadRequest) -> ReadingPlan:
        """Plan the request. Raises as ``plan_read`` does."""
        return await asyncio.to_thread(
            plan_read, request, profile=self.profile, splitter=self.splitter, max_chars=self.max_chars
        )


def new_record(job: ReadJob, *, status: ReadStatus = "queued", created_at: int | None = None) -> LongRead:
    """Return the record of a read that has not begun."""
    request = job.request
    return LongRead(
        id=job.read_id,
        status=status,
        created_at=int(time.time()) if created_at is None else created_at,
        model=job.model,
        strategy=request.strategy,
        service_tier=request.tier,
        progress=Progress(passes_max=1 + job.request.max_rereads if job.request.strategy == "memreread" else 1),
        outputs=tuple(ReadOutput(question=question) for question in request.questions or ()),
        metadata=request.metadata,
    )


async def run_read(
    job: ReadJob,
    record: LongRead,
    *,
    plan: ReadingPlan,
    tools: ReadingTools,
    checkpoints: Checkpoints | None,
    publish: Publish,
    started_at: float,
    first_sequence: int,
) -> LongRead:
    """Read the document and publish every event. Returns the finished record, completed or incomplete.

    A read that another worker may resume keeps its replies in ``checkpoints``; others have none. ``started_at`` (epoch
    seconds) is the start of the first run, from which the deadline counts. Raises the errors of the engine, the
    checkpoints and ``publish``.
    """
    document = await document_of(job, plan, splitter=tools.splitter, files=tools.files)
    chunks = document.chunks
    account = ReadAccount(record, job.request, plan.profile, tools.metrics, publish, first_sequence)
    attributes = {"memloop.strategy": job.request.strategy, "memloop.chunks": len(chunks)}
    with tools.metrics.longread_active.track_inprogress(), span("long_read", attributes):
        await account.begin(len(chunks))
        journaled = tools.asked_by(job, checkpoints)
        recording = await tools.traces.new_recording(job.tenant)
        try:
            model: ChatModel = _budgeted(journaled, job, plan, len(chunks), started_at)
            if recording:
                chunks, model = RecordedChunks(chunks, recording), RecordedModel(model, recording)
            results = await read_questions(
                job.request.asked,
                chunks,
                strategy=job.request.strategy,
                max_rereads=job.request.max_rereads,
                reader=Reader(model, plan.profile, account.report, job.request.options),
            )
            account.completed(results)
        except BudgetSpent as spent:
            results = []
            await _answer_what_is_open(job, plan, journaled, account)
            account.incomplete(spent)
        if job.request.evidence:
            await cite(account, document, tools.similarity)
    await save_memories(job, account, tools.memory)
    ended = await account.close()
    if recording and results:
        await tools.traces.keep_read(
            recording,
            list(zip(job.request.asked, results, strict=True)),
            trace_id=job.read_id,
            tenant=job.tenant,
            owners=job.owned,
            strategy=job.request.strategy,
            served=Served(job.model, plan.profile.ref),
        )
        with suppress(DependencyError):
            try:
                await tools.records.get(job.tenant, job.read_id)
            except NotFound:  # deleted while the trace was kept
                await tools.traces.records.forget_one(job.tenant, job.read_id)
    return ended


def _budgeted(model: ChatModel, job: ReadJob, plan: ReadingPlan, chunks: int, started_at: float) -> Budgeted:
    """Apply the read's limits. If the calls may not suffice, one per question is reserved for a closing answer."""
    request = job.request
    calls = request.max_llm_calls
    if calls is not None and calls < max_calls(request, chunks, memories_in_a_chunk=plan.budget.memories_in_a_chunk):
        calls = max(0, calls - len(request.asked))
    left_s = None if request.deadline_s is None else max(0.0, request.deadline_s - (time.time() - started_at))
    return Budgeted(model, max_llm_calls=calls, deadline_s=left_s)


async def _answer_what_is_open(job: ReadJob, plan: ReadingPlan, model: ChatModel, account: ReadAccount) -> None:
    """Answer from the memories so far; questions without a memory get no answer."""
    with suppress(DependencyError, TimeoutError):
        async with asyncio.timeout(_CLOSING_ANSWER_S):
            for number in account.unanswered:
                question, memory = job.request.asked[number], account.memory(number)
                reply = await answer(question, memory, model=model, profile=plan.profile)
                await account.report(Answered(reply.answer, reply.boxed, reply.usage, reply.truncated, number))


async def save_memories(job: ReadJob, account: ReadAccount, queue: MemoryQueue) -> None:
    """Queue each question's memory as a write of its own, once for one read, when the request wants it kept.

    A read that ended early keeps what it has found so far. The key names document and question: another read of both
    makes a newer version of the memory, and the same question about another document a memory of its own. Nothing is
    queued for a user that was erased after the read had been admitted.
    """
    save = job.request.save_to_memory
    if save is None:
        return
    namespace, document = save.namespace(job.tenant), await asyncio.to_thread(job.document_digest)
    for number, question in enumerate(job.request.asked):
        memory = account.found_memory(number)
        if not memory.strip():
            continue
        parts = [memory[start : start + MAX_TEXT_CHARS] for start in range(0, len(memory), MAX_TEXT_CHARS)]
        name = job.read_id if job.request.questions is None else f"{job.read_id}\0{question}"
        write = MemoryJob(
            event_id=event_id(namespace.lane(), hashlib.sha256(name.encode()).hexdigest()[:32]),
            namespace=namespace,
            turns=tuple(Source(role="assistant", content=part) for part in parts),
            infer=False,
            key=f"Document {document}: {question}",  # the document first: a long key loses its end
            metadata={"long_read_id": job.read_id},
        )
        with suppress(Conflict):
            await queue.enqueue(write, began=job.began)
