"""What a read says of itself: its loop's steps as events, and the record as it stands with each."""

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Required, TypedDict, Unpack

from gateway.long_read.records import terminal_event
from gateway.metrics import Metrics
from memloop.loops.budget import BudgetSpent
from memloop.loops.results import Degradations, ReadResult
from memloop.loops.so_far import MemorySoFar, degradations_of
from memloop.loops.steps import Answered, ChunkRead, Integrated, Merged, ReadStep, RereadStarted, SubAnswered
from memloop.profiles import Profile
from memloop.wire.long_read import (
    EventType,
    Evidence,
    IncompleteDetails,
    LongRead,
    LongReadRequest,
    Progress,
    ReadDegradations,
    ReadEvent,
    ReadOutput,
    ReadStatus,
    ReadUsage,
    SubQuestion,
)
from memloop.wire.memory import Usage
from memloop_service.tracing import past_span

Publish = Callable[[ReadEvent, LongRead], Awaitable[None]]
"""Called with every event and the record as it stands with it, in order."""


class _OutputFields(TypedDict, total=False):
    """The fields of a question's output that change."""

    output_text: str
    memory: str
    subquestions: tuple[SubQuestion, ...]
    evidence: tuple[Evidence, ...]


class _RecordFields(_OutputFields, total=False):
    """The fields of a record that change."""

    status: ReadStatus
    completed_at: int
    progress: Progress
    outputs: tuple[ReadOutput, ...]
    usage: ReadUsage
    degradations: ReadDegradations
    incomplete_details: IncompleteDetails


class _EventFields(TypedDict, total=False):
    """The fields of an event beside its number and time."""

    type: Required[EventType]
    read: LongRead
    progress: Progress
    chunk: int
    memory: str
    tokens: int
    question: str | None
    question_index: int | None
    segment: int | None
    delta: str


class ReadAccount:
    """Turns the loop's steps into events, and keeps the record as it stands."""

    def __init__(
        self,
        record: LongRead,
        request: LongReadRequest,
        profile: Profile,
        metrics: Metrics,
        publish: Publish,
        first_sequence: int,
    ) -> None:
        self._record = record
        self._several = request.questions is not None
        self._outputs = [ReadOutput(question=question) for question in request.asked]
        self._memories = [MemorySoFar(profile) for _ in request.asked]
        self._answered: set[int] = set()
        self._metrics = metrics
        self._publish = publish
        self._next = first_sequence
        self._usage = Usage()
        self._degradations = Degradations()
        self._last_step = time.monotonic()

    @property
    def unanswered(self) -> list[int]:
        """Questions that have a memory and no answer."""
        every = range(len(self._outputs))
        return [number for number in every if number not in self._answered and self._memories[number].anything]

    def memory(self, number: int) -> str:
        """The root memory of a question so far."""
        return self._memories[number].text

    async def begin(self, chunks: int) -> None:
        """The document has so many chunks, and the first is about to be read."""
        progress = self._record.progress.model_copy(update={"chunks_total": chunks, "chunks_done": 0})
        self._keep(status="in_progress", progress=progress)
        await self._say(type="long_read.in_progress", read=self._record)

    async def report(self, step: ReadStep) -> None:
        """The loop's callback."""
        self._count(step)
        self._memories[step.asked].note(step)
        match step:
            case ChunkRead():
                await self._chunk_read(step)
            case RereadStarted():
                await self._reread_started(step)
            case SubAnswered(question=question, answer=sub_answer):
                found = SubQuestion(question=question, answer=sub_answer)
                self._tell(step.asked, subquestions=(*self._outputs[step.asked].subquestions, found))
            case Integrated() | Merged():
                self._tell(step.asked, memory=self.memory(step.asked))
            case Answered(answer=text):
                self._answered.add(step.asked)
                self._tell(step.asked, output_text=text)
                await self._say(type="long_read.output_text.delta", delta=text, question_index=self._index(step))
            case _:
                pass

    @property
    def outputs(self) -> tuple[ReadOutput, ...]:
        """Each question with its answer and memory as they stand."""
        return tuple(self._outputs)

    def told(self, number: int) -> str:
        """The memory of a question as it stands; empty when nothing was found."""
        return self._outputs[number].memory if self._memories[number].anything else ""

    def cite(self, number: int, evidence: tuple[Evidence, ...]) -> None:
        """Keep the evidence of a question."""
        self._tell(number, evidence=evidence)

    def completed(self, results: Sequence[ReadResult]) -> None:
        """The record of a read that came to its end."""
        for number, result in enumerate(results):
            self._tell(number, output_text=result.answer, memory=result.memory, subquestions=result.subquestions)
        self._end("completed")

    def incomplete(self, spent: BudgetSpent) -> None:
        """The record of a read whose budget is spent."""
        for number in range(len(self._outputs)):
            self._tell(number, memory=self.memory(number))
        self._keep(incomplete_details=IncompleteDetails(reason=spent.reason))
        self._end("incomplete")

    async def close(self) -> LongRead:
        """Publish the terminal event; the record as it ended."""
        await self._publish(terminal_event(self._record, self._next), self._record)
        return self._record

    async def _chunk_read(self, step: ChunkRead) -> None:
        if step.pass_number == 1:
            self._tell(step.asked, memory=self.memory(step.asked))
        self._progress(step.pass_number, step.done, step.chunks_total)
        now = time.monotonic()
        self._metrics.longread_chunks.labels(self._record.strategy).inc()
        self._metrics.longread_chunk_seconds.observe(now - self._last_step)
        told = {"memloop.pass": step.pass_number, "memloop.chunk": step.chunk}
        past_span("long_read.chunk", told, seconds=now - self._last_step)
        self._last_step = now
        await self._say(
            type="long_read.chunk.completed",
            progress=self._record.progress,
            chunk=step.chunk,
            memory=step.memory,
            tokens=step.tokens,
            question=step.question if step.pass_number > 1 else None,
            question_index=self._index(step),
            segment=step.segment,
        )

    async def _reread_started(self, step: RereadStarted) -> None:
        self._progress(step.pass_number, 0, step.chunks_total)
        await self._say(
            type="long_read.reread.started",
            question=step.question,
            question_index=self._index(step),
            progress=self._record.progress,
        )

    def _index(self, step: ReadStep) -> int | None:
        return step.asked if self._several else None

    def _count(self, step: ReadStep) -> None:
        if isinstance(step, RereadStarted):
            return
        degradations = degradations_of(step)
        for kind, times in degradations.counts.items():
            self._metrics.longread_degradations.labels(kind).inc(times)
        self._usage, self._degradations = self._usage + step.usage, self._degradations + degradations
        self._keep(usage=ReadUsage.of(self._usage), degradations=ReadDegradations(**self._degradations.counts))

    def _tell(self, number: int, **values: Unpack[_OutputFields]) -> None:
        """Keep what is known of a question: in ``outputs``, or in the record itself when it is the only one."""
        self._outputs[number] = self._outputs[number].model_copy(update={**values})
        if self._several:
            self._keep(outputs=tuple(self._outputs))
        else:
            values.pop("output_text", None)  # a delta until the end
            self._keep(**values)

    def _progress(self, pass_number: int, done: int, total: int) -> None:
        """Of several questions the one that is in the latest pass counts."""
        before = self._record.progress
        if pass_number >= before.pass_:
            update = {"pass_": pass_number, "chunks_done": done, "chunks_total": total}
            self._keep(progress=before.model_copy(update=update))

    def _keep(self, **values: Unpack[_RecordFields]) -> None:
        self._record = self._record.model_copy(update={**values})

    def _end(self, status: ReadStatus) -> None:
        text = "" if self._several else self._outputs[0].output_text
        self._keep(status=status, output_text=text, completed_at=int(time.time()))

    async def _say(self, **values: Unpack[_EventFields]) -> None:
        event = ReadEvent.model_validate({**values, "sequence_number": self._next, "at": datetime.now(UTC)})
        self._next += 1
        await self._publish(event, self._record)
