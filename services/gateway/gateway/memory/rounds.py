"""The rounds of a memory write in its journal, the adds that store a round, and the event with which a write ends."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Final, Literal, TypeVar

from gateway.memory.jobs import MemoryJob
from memloop.loops.results import AddMemories, BufferTurns, DecisionResult, IgnoreTurns, InvalidOutput
from memloop.profiles import well_formed
from memloop.wire.base import Wire
from memloop.wire.memory import MemoryDraft, MemoryItem, Source, Usage, Written
from memloop.wire.memory_events import MAX_REPLY_CHARS, DecisionRecord, MemoryEvent

_DRAFTS_PER_ADD: Final = 100
_MOST_DECISIONS = 200
"""Of a write that was decided again and again: its newest."""


T = TypeVar("T")


class KeptPart(Wire):
    """The turns of one decision that was not usable, and the memories from which they were read."""

    turns: tuple[Source, ...]
    items: tuple[MemoryItem, ...]


class Start(Wire):
    """The buffer at the start of the write, or what is left of the turns that were kept."""

    turns: tuple[Source, ...] = ()
    kept: tuple[KeptPart, ...] = ()


class Round(Wire):
    """A decision in its journal form."""

    action: Literal["add", "buffer", "ignore", "invalid", "split"]
    drafts: tuple[MemoryDraft, ...] = ()
    reason: str = ""
    records: tuple[DecisionRecord, ...] = ()
    usage: Usage = Usage()


class Stored(Wire):
    """The store's results for the memories of a round, or for the turns of an unusable one."""

    memories: tuple[Written, ...]


def given_up(job: MemoryJob, journal: Mapping[str, str], *, attempts: int, error: str) -> MemoryEvent:
    """Return the event of a write that is given up: failed, with the model's decisions and the stored memories.

    One whose memories were to be decided again keeps these.
    """
    if job.kept is not None:
        return ended_event(job, "kept_verbatim", attempts=attempts, memories=job.kept.memories, error=error)
    names = sorted(journal, key=_place)
    rounds = [Round.model_validate_json(journal[name]) for name in names if name.startswith("decision:")]
    stored = [Stored.model_validate_json(journal[name]) for name in names if name.startswith("stored:")]
    memories = [written for part in stored for written in part.memories]
    return ended_event(job, "failed", attempts=attempts, rounds=rounds, memories=memories, error=error)


def ended_event(
    job: MemoryJob,
    status: Literal["completed", "kept_verbatim", "failed"],
    *,
    attempts: int,
    rounds: Sequence[Round] = (),
    memories: Sequence[Written] = (),
    error: str | None = None,
) -> MemoryEvent:
    """Return the event of a write that ends now; one that was decided again goes on with its former event."""
    before, usage = job.kept, sum((decided.usage for decided in rounds), start=Usage())
    records = tuple(record for decided in rounds for record in decided.records)
    return MemoryEvent(
        event_id=job.event_id,
        status=status,
        user_id=job.namespace.user_id,
        created_at=job.created_at,
        completed_at=datetime.now(UTC),
        attempts=attempts,
        decisions=records if before is None else (*before.decisions, *records)[-_MOST_DECISIONS:],
        memories=tuple(memories),
        usage=usage if before is None else before.usage + usage,
        redacted=job.redacted,
        error=error,
        redecided=0 if before is None else before.redecided + 1,
    )


def _place(name: str) -> tuple[str, int]:
    """Order the fields of a journal by their number: ``decision:10`` comes after ``decision:9``."""
    kind, _, number = name.partition(":")
    return kind, int(number) if number.isdecimal() else 0


def round_of(result: DecisionResult, *, splits: bool, may_buffer: bool) -> Round:
    """Return the decision in its journal form; with ``splits``, a truncated reply leads to two smaller rounds.

    The last record of an unusable one has the beginning of the reply. Turns that may not be buffered are undecided if
    the writer would still wait for more.
    """
    match result.decision:
        case AddMemories(drafts=drafts, summary=summary):
            return Round(action="add", drafts=drafts, reason=summary, records=result.records, usage=result.usage)
        case BufferTurns(reason=reason):
            action, why = ("buffer", reason) if may_buffer else ("invalid", f"it would still wait: {reason}")
            return Round(action=action, reason=why, records=result.records, usage=result.usage)
        case IgnoreTurns(reason=reason):
            return Round(action="ignore", reason=reason, records=result.records, usage=result.usage)
        case InvalidOutput(problem=problem, raw=raw, cut=cut):
            action = "split" if cut and splits else "invalid"
            *earlier, last = result.records
            records = (*earlier, last.model_copy(update={"reply": well_formed(raw[:MAX_REPLY_CHARS])}))
            return Round(action=action, reason=problem, records=records, usage=result.usage)


def groups(drafts: Sequence[tuple[Source, MemoryDraft]]) -> Iterator[list[tuple[Source, MemoryDraft]]]:
    """Group the drafts by timestamp, since an add has only one, within the size limit of an add."""
    for _, same_time in groupby(drafts, key=lambda pair: pair[0].timestamp):
        yield from slices(list(same_time), _DRAFTS_PER_ADD)


def slices(parts: Sequence[T], size: int = _DRAFTS_PER_ADD) -> Iterator[list[T]]:
    """Split into runs of at most ``size``; the default is the size limit of an add."""
    return (list(parts[start : start + size]) for start in range(0, len(parts), size))
