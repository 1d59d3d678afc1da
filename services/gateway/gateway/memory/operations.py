"""Operations on memories, shared by the native routes, the mem0 routes and the MCP tools.

Texts with ``infer`` false are written verbatim, without a worker. A worker flushes idle buffers.
"""

import asyncio
import hashlib
import logging
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from gateway.access import Principal
from gateway.memory.events import event_id as event_id_of
from gateway.memory.jobs import LEASE_MS, DirectWrite, MemoryJob
from gateway.memory.memory import Memory
from gateway.memory.rounds import adds_of, ended_event
from memloop.loops.rendering import without_thoughts
from memloop.wire.errors import Conflict, InvalidRequest, MemloopError, NotFound, TooLarge, Unprocessable
from memloop.wire.memory import BatchOutcome, BatchResult, Erased, Namespace, StoreBatch
from memloop.wire.memory_events import MemoryEvent
from memloop.wire.memory_requests import MemoryAdd, MemoryBatch

_LOG = logging.getLogger(__name__)
_FINAL = (Conflict, InvalidRequest, TooLarge, Unprocessable)
"""The text is rejected, or an erasure has taken the lane: a queued job would bring back what was erased."""


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


_WAIT_S = 5.0
_POLL_S = 0.05


def check_has_text(add: MemoryAdd) -> None:
    """Raise Unprocessable when no message has any text."""
    if not any(message.content.strip() for message in add.messages):
        raise Unprocessable("No message has any text.", param="messages", code="empty_messages")


async def write_memory(add: MemoryAdd, memory: Memory, principal: Principal, *, event_id: str) -> MemoryEvent | None:
    """Queue a write. Returns None at once, or its event once it has ended or the wait timed out.

    Waits if requested (``sync``) or if no model is involved (``infer`` false). Without a model the write bypasses the
    queue when the lane is idle. Raises Unavailable, Timeout, and the store's errors for a rejected text.
    """
    job = job_of(add, principal.tenant, event_id=event_id)
    if not add.infer:
        direct = await memory.queue.begin_direct_write(job)
        if (done := await write_directly(direct, memory)) is not None:
            return done
        job = direct.job
    await memory.queue.enqueue(job)
    if add.infer and not add.sync:
        return None
    return await memory.queue.events.wait(principal.tenant, event_id, timeout_s=memory.sync_wait_s)


async def write_batch(batch: MemoryBatch, memory: Memory, principal: Principal) -> BatchResult:
    """Store all adds in one call of the store, which orders the writes of each user; no events are kept.

    The memories are omitted for a key that may not read them. Raises the store's errors.
    """
    began = await memory.queue.lanes.newest_token()
    event_id = f"evt_{secrets.token_hex(16)}"
    parts = [
        adds_of(job_of(MemoryAdd(**dict(add), infer=False), principal.tenant, event_id=f"{event_id}:{at}"), token=None)
        for at, add in enumerate(batch.adds)
    ]
    adds = tuple(add for part in parts for add in part)
    outcomes = iter((await memory.store.add_batch(StoreBatch(adds=adds, began=began))).results if adds else ())
    shown = principal.allows("memory:read")
    return BatchResult(results=tuple(_joined([next(outcomes) for _ in adds], shown=shown) for adds in parts))


def _joined(parts: Sequence[BatchOutcome], *, shown: bool) -> BatchOutcome:
    """Join the outcomes of an add that was split; report the first error beside the stored memories."""
    memories = tuple(written for part in parts for written in part.memories) if shown else ()
    return BatchOutcome(memories=memories, error=next((part.error for part in parts if part.error), None))


def job_of(add: MemoryAdd, tenant: str, *, event_id: str) -> MemoryJob:
    """Return the write job for a request, without an assistant's thoughts; a text that is kept as it is keeps them."""
    spoken = (
        turn.model_copy(update={"content": without_thoughts(turn.content)}) if turn.role == "assistant" else turn
        for turn in add.messages
    )
    heard = tuple(turn for turn in spoken if turn.content) if add.infer else add.messages
    return MemoryJob(
        event_id=event_id,
        namespace=add.namespace(tenant),
        turns=heard or add.messages,
        settles=add.sync,
        **add.shared_with(MemoryJob),
    )


async def erase(namespace: Namespace, memory: Memory) -> Erased:
    """Delete all data of the namespace, wherever it is, and what was derived from it. Return the counts.

    From the marks on, work that began before stores nothing any more: its token is older. A running write loses its
    job, and so its lease, within a second. The lane of a dead holder is taken over. Raises the errors of the state and
    the store; repeat the erasure then.
    """
    queue, lane = memory.queue, namespace.lane()
    forgotten = await queue.events.forget(namespace)
    deadline, token = time.monotonic() + _WAIT_S, None
    while token is None:
        token = await queue.lanes.take_lane(lane, lease_ms=LEASE_MS, force=time.monotonic() >= deadline)
        if token is None:
            await asyncio.sleep(_POLL_S)
    try:
        await memory.owners.mark(namespace, token)
        late = await queue.events.forget(namespace)  # a write may have ended during the wait for the lane
        await memory.failures.forget(namespace)
        await memory.keeper.policies.forget(namespace)
        deleted = Counter[str]()
        for kind, record_id in await memory.owners.records(namespace):
            with suppress(NotFound):  # it has expired, or its tenant has just deleted it
                await memory.deletes[kind](namespace.tenant, record_id)
                deleted[kind] += 1
        await memory.owners.leave(namespace)
        erased = await memory.store.erase(namespace, fencing_token=token)
    finally:
        await queue.lanes.leave_lane(lane, token)
    deleted["replayed"] += await memory.idempotency.forget_owner(namespace)
    deleted["queue"] = forgotten.waiting + late.waiting
    deleted["events"] = forgotten.events + late.events
    return erased.model_copy(update=deleted)


async def would_erase(namespace: Namespace, memory: Memory) -> Erased:
    """Count what ``erase`` would delete, in the same places, and delete nothing."""
    waiting = await memory.queue.events.would_forget(namespace)
    counted = await memory.store.would_erase(namespace)
    derived = Counter(kind for kind, _ in await memory.owners.records(namespace))
    return counted.model_copy(update={**derived, "queue": waiting.waiting, "events": waiting.events})


_LOOKS_PER_AGE = 4
_LONGEST_PAUSE_S = 60.0
_MOST_AT_ONCE = 100


async def flush_idle_repeatedly(memory: Memory, *, age_s: float) -> None:
    """Flush idle buffers repeatedly. Every worker may do this: a flush is queued only once."""
    while True:
        try:
            await flush_idle(memory, age_s=age_s)
        except MemloopError as error:
            _LOG.warning("idle buffers: %s", error.message)
        await asyncio.sleep(min(age_s / _LOOKS_PER_AGE, _LONGEST_PAUSE_S))


async def flush_idle(memory: Memory, *, age_s: float) -> None:
    """Queue a flush of every buffer unchanged for ``age_s``. Raises the errors of store and queue."""
    before = datetime.now(UTC) - timedelta(seconds=age_s)
    for buffer in (await memory.store.idle_buffers(before, limit=_MOST_AT_ONCE)).buffers:
        # The id comes from the buffer's state, so that all workers use the same one
        state = buffer.model_dump_json(include={"namespace", "updated_at"})
        flush_id = event_id_of(buffer.namespace.lane(), hashlib.sha256(state.encode()).hexdigest()[:32])
        await memory.queue.enqueue(MemoryJob(event_id=flush_id, namespace=buffer.namespace))
