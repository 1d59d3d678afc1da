"""Writes texts verbatim (``infer`` false): builds the store's adds and writes them without a worker."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from gateway.memory.jobs import DirectWrite, MemoryJob
from gateway.memory.memory import Memory
from gateway.memory.rounds import ended_event
from memloop.wire.errors import Conflict, InvalidRequest, MemloopError, TooLarge, Unprocessable
from memloop.wire.memory import MemoryDraft, Source, StoreAdd
from memloop.wire.memory_events import MemoryEvent
from memloop.wire.names import KEY_CHARS, key_of_text

_DRAFTS_PER_ADD = 100
_FINAL = (Conflict, InvalidRequest, TooLarge, Unprocessable)
"""The text is rejected, or an erasure has taken the lane: a queued job would bring back what was erased."""
T = TypeVar("T")


def adds_of(job: MemoryJob, *, token: int | None) -> list[StoreAdd]:
    """Return the job's texts in adds of one timestamp each; a repeated call names the same writes."""
    drafts = [
        (turn, MemoryDraft(key=_key_of(job, turn, number), value=turn.said(), source=turn.if_named()))
        for number, turn in enumerate(job.turns)
        if turn.content.strip()
    ]
    return [_add_of(job, part, pairs, token) for part, pairs in enumerate(groups(drafts))]


def _add_of(job: MemoryJob, part: int, pairs: Sequence[tuple[Source, MemoryDraft]], token: int | None) -> StoreAdd:
    turns = tuple(turn for turn, _ in pairs)
    return StoreAdd(
        namespace=job.namespace,
        drafts=tuple(draft for _, draft in pairs),
        sources=turns if len(turns) == 1 else (),
        metadata=job.metadata,
        timestamp=turns[0].timestamp or job.timestamp or job.created_at,
        expires_at=job.expires_at,
        event_id=f"{job.event_id}:{part}",
        fencing_token=token,
    )


def _key_of(job: MemoryJob, turn: Source, number: int) -> str:
    if job.key is None:
        return key_of_text(turn.said())
    return key_of_text(job.key) if number == 0 else f"{job.key[: KEY_CHARS - 12]} (part {number + 1})"


def groups(drafts: Sequence[tuple[Source, MemoryDraft]]) -> Iterator[list[tuple[Source, MemoryDraft]]]:
    """Group the drafts by timestamp, since an add has only one, within the size limit of an add."""
    for _, same_time in groupby(drafts, key=lambda pair: pair[0].timestamp):
        yield from slices(list(same_time), _DRAFTS_PER_ADD)


def slices(parts: Sequence[T], size: int = _DRAFTS_PER_ADD) -> Iterator[list[T]]:
    """Split into runs of at most ``size``; the default is the size limit of an add."""
    return (list(parts[start : start + size]) for start in range(0, len(parts), size))


async def write_directly(write: DirectWrite, memory: Memory) -> MemoryEvent | None:
    """Write at once and return the completed event; None if lane or store is unavailable and the job must be queued.

    Holds the lane under a fencing token, as a worker would. Raises the errors of rejected texts, and Conflict when the
    memories are erased meanwhile. Memories stored before a failure are not duplicated, because the queued job names the
    same writes.
    """
    job, token = write.job, write.token
    if token is None:
        return None
    try:
        stored = [await memory.store.add_redacted(add, write.redactions) for add in adds_of(job, token=token)]
    except BaseException as error:
        await asyncio.shield(memory.queue.lanes.leave_lane(job.namespace.lane(), token))
        if isinstance(error, MemloopError) and not isinstance(error, _FINAL):
            return None
        raise
    memories = [written for result in stored for written in result.results]
    event = ended_event(job, "completed", attempts=1, memories=memories)
    await memory.queue.record_direct_write(job, event, token=token)
    return event
