"""Converts production traces to rows: calls of good runs to imitate, and the runs themselves as tasks for RL.

The traces come from ``GET /v1/admin/traces``; the gateway redacted each before keeping it. They are unreviewed. A call
is imitated if its reply was used unchanged (no rejected tool call, no truncated reply). As a task, a write's gold is
its own decision, and a read's gold is its answer if that was boxed: RL on them keeps a policy near production behaviour
but cannot exceed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from memloop.ports import Completion, Recalled
from memloop.wire.chat import Json
from memloop.wire.memory_events import DecisionRecord
from memloop.wire.traces import Trace, TracedCall
from trainer.data.json_rows import DataError, rows
from trainer.data.replies import reply_message
from trainer.data.rows import AgentName, conversation_row, reading_row, writing_row

SOURCE = "memloop/traces"


def traces(paths: list[Path]) -> Iterator[Trace]:
    """Yield the traces of exported files, each once. Raises DataError, also for an incomplete export."""
    seen = set[str]()
    for path in paths:
        for line, row in rows(path):
            held = cast(Json, row) if isinstance(row, dict) else {}
            if "exported" in held:
                continue
            if "error" in held:
                raise DataError(f"{path}, line {line}: the export is incomplete; download it again")
            try:
                trace = Trace.model_validate(row)
            except ValidationError as error:
                raise DataError(f"{path}, line {line}: not a trace: {error.error_count()} fault(s)") from error
            if trace.id not in seen:
                seen.add(trace.id)
                yield trace


@dataclass(slots=True)
class Sorted:
    """Counts of the calls and runs examined."""

    rejected: int = 0
    cut: int = 0
    without_gold: int = 0
    _index: int = field(default=0)

    def imitation(self, trace: Trace) -> Iterator[Json]:
        """Yield a row of ``schemas.CONVERSATION`` for each call whose reply was used."""
        records = trace.decisions if trace.kind == "memory_write" else ()
        for number, call in enumerate(trace.calls):
            record = records[number] if number < len(records) else None
            if call.finish_reason == "length":
                self.cut += 1
            elif record is not None and was_rejected(record):
                self.rejected += 1
            else:
                yield self._imitated(trace, call, number)

    def writing(self, trace: Trace) -> Iterator[Json]:
        """Yield a row of ``schemas.WRITING`` for a memory write."""
        if trace.kind == "memory_write" and trace.action is not None:
            yield writing_row(
                data_source=SOURCE,
                index=self._next(),
                id_=trace.id,
                turns=trace.turns,
                stored=[Recalled(each.id, each.text, each.valid_from, each.key) for each in trace.found],
                gold=(trace.action, *trace.memories),
            )

    def reading(self, trace: Trace) -> Iterator[Json]:
        """Yield a row of ``schemas.READING`` for each boxed answer of a read."""
        agent: AgentName = "memreread" if trace.strategy == "memreread" else "memagent"
        for number, answer in enumerate(trace.answers):
            if not (answer.boxed and answer.answer.strip() and trace.document):
                self.without_gold += 1
                continue
            yield reading_row(
                data_source=SOURCE,
                index=self._next(),
                id_=f"{trace.id}.{number}",
                question=answer.question,
                answers=[answer.answer],
                context=trace.document,
                agent=agent,
            )

    def _imitated(self, trace: Trace, call: TracedCall, number: int) -> Json:
        said = Completion(call.content, call.finish_reason, call.reasoning, call.tool_calls)
        return conversation_row(
            data_source=SOURCE,
            index=self._next(),
            id_=f"{trace.id}.{number}",
            kind=trace.kind,
            messages=(*call.messages, reply_message(said, with_tools=call.with_tools)),
            learned=[len(call.messages)],
            tools=trace.tools if call.with_tools else (),
            thinking=call.thinking,
        )

    def _next(self) -> int:
        self._index += 1
        return self._index - 1


def was_rejected(record: DecisionRecord) -> bool:
    """Return whether the reply was not a valid call, so that the model was asked once more."""
    return record.action == "invalid" or record.parse_path in {"failed", "repaired"}


def of_each(paths: list[Path], make: Callable[[Trace], Iterator[Json]]) -> Iterator[Json]:
    """Yield the rows that ``make`` builds from each trace."""
    for trace in traces(paths):
        yield from make(trace)
