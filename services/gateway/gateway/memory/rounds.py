"""The rounds of a memory write in its journal, and the event with which a write ends."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from redis.asyncio import Redis

from gateway.memory.jobs import MemoryJob
from gateway.queue import Journal
from memloop.loops.decisions import AddMemories, BufferTurns, DecisionResult, IgnoreTurns, InvalidOutput
from memloop.wire.base import Wire
from memloop.wire.memory import MemoryDraft, Source, Usage, Written
from memloop.wire.memory_events import DecisionRecord, MemoryEvent

_ROUND_FIELDS = ("decision:", "invalid:")


class Start(Wire):
    """The buffer at the start of the write."""

    turns: tuple[Source, ...]


class Round(Wire):
    """A decision in its journal form."""

    action: Literal["add", "buffer", "ignore", "invalid", "split"]
    drafts: tuple[MemoryDraft, ...] = ()
    reason: str = ""
    records: tuple[DecisionRecord, ...] = ()
    usage: Usage = Usage()


class Stored(Wire):
    """The store's results for a round's memories."""

    memories: tuple[Written, ...]


async def failed_event(job: MemoryJob, redis: Redis, *, attempts: int, error: str) -> MemoryEvent:
    """Return the event of a failed write with the model's decisions and the stored memories."""
    kept = await Journal(redis, job.event_id).all()
    names = sorted(kept, key=_place)
    rounds = [Round.model_validate_json(kept[name]) for name in names if name.startswith(_ROUND_FIELDS)]
    stored = [Stored.model_validate_json(kept[name]) for name in names if name.startswith("stored:")]
    memories = [written for part in stored for written in part.memories]
    return ended_event(job, "failed", attempts=attempts, rounds=rounds, memories=memories, error=error)


def ended_event(
    job: MemoryJob,
    status: Literal["completed", "failed"],
    *,
    attempts: int,
    rounds: Sequence[Round] = (),
    memories: Sequence[Written] = (),
    error: str | None = None,
) -> MemoryEvent:
    """Return the event of a write that ends now."""
    return MemoryEvent(
        event_id=job.event_id,
        status=status,
        user_id=job.namespace.user_id,
        created_at=job.created_at,
        completed_at=datetime.now(UTC),
        attempts=attempts,
        decisions=tuple(record for decided in rounds for record in decided.records),
        memories=tuple(memories),
        usage=sum((decided.usage for decided in rounds), start=Usage()),
        redacted=job.redacted,
        error=error,
    )


def _place(name: str) -> tuple[str, int]:
    """Order the fields of a journal by their number: ``decision:10`` comes after ``decision:9``."""
    kind, _, number = name.partition(":")
    return kind, int(number) if number.isdecimal() else 0


def round_of(result: DecisionResult, *, splits: bool) -> Round:
    """Return the decision in its journal form; with ``splits``, a truncated reply is not a failure."""
    match result.decision:
        case AddMemories(drafts=drafts, summary=summary):
            return Round(action="add", drafts=drafts, reason=summary, records=result.records, usage=result.usage)
        case BufferTurns(reason=reason):
            return Round(action="buffer", reason=reason, records=result.records, usage=result.usage)
        case IgnoreTurns(reason=reason):
            return Round(action="ignore", reason=reason, records=result.records, usage=result.usage)
        case InvalidOutput(problem=problem, cut=cut):
            action = "split" if cut and splits else "invalid"
            return Round(action=action, reason=problem, records=result.records, usage=result.usage)
