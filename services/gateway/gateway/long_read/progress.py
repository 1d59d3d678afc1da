"""Turns the steps of a read into its events, and keeps its record up to date."""

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from gateway.long_read.records import terminal_event
from gateway.metrics import Metrics
from memloop.loops.journal import BudgetSpent
from memloop.loops.notes import MemorySoFar, degradations_of
from memloop.loops.results import ReadResult
from memloop.loops.steps import Answered, ChunkRead, Integrated, Merged, ReadStep, RereadStarted, SubAnswered
from memloop.profiles import Profile
from memloop.wire.long_read import (
    Evidence,
    IncompleteDetails,
    LongRead,
    LongReadRequest,
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
"""Called with every event, in order, and the record at that moment."""


class ReadAccount:
    """Converts the loop's steps to events and updates the record with each."""

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
        self._degradations = ReadDegradations()
        self._last_step = time.monotonic()

    @property
    def unanswered(self) -> list[int]:
        """Questions that have a memory and no answer."""
        every = range(len(self._outputs))
        return [number for number in every if number not in self._answered and self._memories[number].anything]

    def memory(self, number: int) -> str:
        """Return the current root memory of a question."""
        return self._memories[number].text

    async def begin(self, chunks: int) -> None:
        """Publish the start of a read of ``chunks`` chunks."""
        self._progress(1, 0, chunks)
        self._update(status="in_progress")
        await self._emit(type="long_read.in_progress", read=self._record)

    async def report(self, step: ReadStep) -> None:
        """Record and publish a step. The loop calls this."""
        if not isinstance(step, RereadStarted):
            degradations = degradations_of(step)
            for kind, times in degradations.counts.items():
                self._metrics.longread_degradations.labels(kind).inc(times)
            self._usage, self._degradations = self._usage + step.usage, self._degradations + degradations
            self._update(usage=ReadUsage.of(self._usage), degradations=self._degradations)
        self._memories[step.asked].note(step)
        match step:
            case ChunkRead():
                if step.pass_number == 1:
                    self._update_output(step.asked, memory=self.memory(step.asked))
                self._progress(step.pass_number, step.done, step.chunks_total)
                now = time.monotonic()
                self._metrics.longread_chunks.labels(self._record.strategy).inc()
                self._metrics.longread_chunk_seconds.observe(now - self._last_step)
                attributes = {"memloop.pass": step.pass_number, "memloop.chunk": step.chunk}
                past_span("long_read.chunk", attributes, seconds=now - self._last_step)
                self._last_step = now
                await self._emit(
                    type="long_read.chunk.completed",
                    progress=self._record.progress,
                    chunk=step.chunk,
                    memory=step.memory,
                    tokens=step.tokens,
                    question=step.question if step.pass_number > 1 else None,
                    question_index=self._index(step),
                    segment=step.segment,
                )
            case RereadStarted():
                self._progress(step.pass_number, 0, step.chunks_total)
                await self._emit(
                    type="long_read.reread.started",
                    question=step.question,
                    question_index=self._index(step),
                    progress=self._record.progress,
                )
            case SubAnswered(question=question, answer=sub_answer):
                found = SubQuestion(question=question, answer=sub_answer)
                self._update_output(step.asked, subquestions=(*self._outputs[step.asked].subquestions, found))
            case Integrated() | Merged():
                self._update_output(step.asked, memory=self.memory(step.asked))
            case Answered(answer=text):
                self._answered.add(step.asked)
                self._update_output(step.asked, output_text=text)
                await self._emit(type="long_read.output_text.delta", delta=text, question_index=self._index(step))
            case _:
                pass

    @property
    def outputs(self) -> tuple[ReadOutput, ...]:
        """Each question with its present answer and memory."""
        return tuple(self._outputs)

    def found_memory(self, number: int) -> str:
        """Return the present memory of a question; empty if nothing was found."""
        return self._outputs[number].memory if self._memories[number].anything else ""

    def cite(self, number: int, evidence: tuple[Evidence, ...]) -> None:
        """Set the evidence of a question."""
        self._update_output(number, evidence=evidence)

    def completed(self, results: Sequence[ReadResult]) -> None:
        """Mark the read as completed."""
        for number, result in enumerate(results):
            self._update_output(
                number, output_text=result.answer, memory=result.memory, subquestions=result.subquestions
            )
        self._end("completed")

    def incomplete(self, spent: BudgetSpent) -> None:
        """Mark the read as incomplete: its budget is spent."""
        for number in range(len(self._outputs)):
            self._update_output(number, memory=self.memory(number))
        self._update(incomplete_details=IncompleteDetails(reason=spent.reason))
        self._end("incomplete")

    async def close(self) -> LongRead:
        """Publish the terminal event and return the final record."""
        await self._publish(terminal_event(self._record, self._next), self._record)
        return self._record

    def _index(self, step: ReadStep) -> int | None:
        return step.asked if self._several else None

    def _update_output(self, number: int, **values: object) -> None:
        """Update a question's output: in ``outputs``, or in the record itself for a single question."""
        self._outputs[number] = self._outputs[number].model_copy(update=values)
        if self._several:
            self._update(outputs=tuple(self._outputs))
        else:
            values.pop("output_text", None)  # a delta until the end
            self._update(**values)

    def _progress(self, pass_number: int, done: int, total: int) -> None:
        """Show the progress of the question in the latest pass."""
        before = self._record.progress
        if pass_number >= before.pass_:
            changes = {"pass_": pass_number, "chunks_done": done, "chunks_total": total}
            self._update(progress=before.model_copy(update=changes))

    def _update(self, **values: object) -> None:
        self._record = self._record.model_copy(update=values)

    def _end(self, status: ReadStatus) -> None:
        text = "" if self._several else self._outputs[0].output_text
        self._update(status=status, output_text=text, completed_at=int(time.time()))

    async def _emit(self, **values: object) -> None:
        event = ReadEvent.model_validate({**values, "sequence_number": self._next, "at": datetime.now(UTC)})
        self._next += 1
        await self._publish(event, self._record)
