"""Turns that are kept word for word because the memory writer gave no usable decision on them.

Nothing that a user says is lost because a model replies badly. Such turns are memories like others, of the type
``KeptTurn``: they are searched and recalled, with their speaker, date and source. A long turn is cut into pieces that
the store's embedding model reads whole. The key of a piece is its place in its write, so no other memory updates it,
and the turns can be put together again for a later decision.

A write whose turns were kept is decided again when a client asks, and by itself once the writer works again. The job
keeps its id. It reads the kept memories when it runs, replaces them by what the writer decides, and leaves them as they
are if its reply is unusable again. An erased write has no record any more, so nothing decides on it again.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Final

from gateway.memory.jobs import MemoryJob, MemoryQueue
from gateway.queue import JobRecords
from memloop.wire.errors import Conflict, DependencyError, NotFound, OtherTenants
from memloop.wire.memory import MemoryDraft, MemoryItem, MemoryType, Namespace, Scope, Source
from memloop.wire.memory_events import MemoryEvent
from memloop_clients.store import StoreClient
from memloop_state.indexes import Indexes
from memloop_state.link import State
from memloop_state.steps import Partition, Partitions, Values

KEPT: Final[MemoryType] = "KeptTurn"
_PIECE_BYTES: Final = 800
"""About 200 tokens of prose; MiniLM reads 256."""
_MOST_PIECES: Final = 128
"""Of the turns of one decision; pieces of more text are longer."""


def kept_drafts(turns: Sequence[Source], *, key: str) -> Iterator[tuple[Source, MemoryDraft]]:
    """Yield a memory for each piece of each turn, with the piece as a turn. ``key`` names the decision in its store."""
    size = max(_PIECE_BYTES, sum(len(turn.content.encode("utf-8", "surrogatepass")) for turn in turns) // _MOST_PIECES)
    for place, turn in enumerate(turns):
        name = turn.name or (None if turn.role == "user" else turn.role)
        for number, text in enumerate(_pieces(turn.content, size)):
            piece = turn.model_copy(update={"content": text, "name": name})
            place_of_piece = f"{key}:{place:04}:{number:04}"
            yield (piece, MemoryDraft(key=place_of_piece, value=piece.said(), memory_type=KEPT, source=piece))


def parts_of(kept: Iterable[MemoryItem]) -> Iterator[tuple[tuple[Source, ...], tuple[MemoryItem, ...]]]:
    """Yield the turns of each decision that was not usable, put together again, and their memories, in order."""
    ordered = sorted((item for item in kept if item.sources), key=lambda item: item.key)
    for _, found in groupby(ordered, key=lambda item: item.key.rsplit(":", 2)[0]):
        items = tuple(found)
        turns = groupby(items, key=lambda item: item.key.rpartition(":")[0])
        yield tuple(_joined([item.sources[0] for item in pieces]) for _, pieces in turns), items


async def still_kept(event: MemoryEvent, store: StoreClient, tenant: str) -> tuple[MemoryItem, ...]:
    """Return the kept memories of the write that are as they were written: not edited, judged, replaced or deleted."""
    found: list[MemoryItem] = []
    for written in event.memories:
        if written.item.memory_type == KEPT:
            with suppress(NotFound):
                item = await store.item(written.item.id, tenant=tenant)
                is_live = item.status == "activated" and item.valid_to is None
                is_own = item.version != written.item.version or item.feedback is not None
                found += [item] if is_live and not is_own else []
    return tuple(found)


def _joined(pieces: Sequence[Source]) -> Source:
    first = pieces[0]
    name = None if first.name == first.role else first.name
    return first.model_copy(update={"content": "".join(piece.content for piece in pieces), "name": name})


def _pieces(text: str, size: int) -> Iterator[str]:
    """Cut the text into pieces of about ``size`` bytes that join to it, after a sentence or a word where it can."""
    chars = max(4, size * len(text) // max(1, len(text.encode("utf-8", "surrogatepass"))))
    sentence = rf".{{{chars // 2},{chars - 2}}}(?:[.!?\u2026\u3002\uff01\uff1f]\s|\n)"
    cut = re.compile(rf"{sentence}|.{{1,{chars - 1}}}(?:\s|\Z)|.{{1,{chars}}}", re.DOTALL)
    return (found.group() for found in cut.finditer(text) if found.group().strip())


_NO_MORE: Final = 1 << 52
"""Added to the time of an event that is not decided again by itself any more: no time of a clock is above it."""
_AT_ONCE: Final = 20
_KEEP_DECIDED_S: Final = 30 * 24 * 3600
"""After so long without a usable decision, the next one is waited for."""
_READ_AT_ONCE: Final = 500
_WAITS: Final = {"status": "queued", "completed_at": None, "error": None}
_HELD: Final = frozenset({"kept_verbatim", "queued", "in_progress"})


def last_decision(state: State) -> Values:
    """Return the time in ms of the last usable decision of any writer."""
    return Values(state, "writer-decided", keep_s=_KEEP_DECIDED_S)


class KeptEvents:
    """The writes that were kept verbatim, by the time since when.

    A write enters before its event ends. One that has expired, was erased or is decided is taken out when it is met.
    """

    def __init__(self, state: State) -> None:
        self._keys = Partitions(state)
        self._indexes = Indexes(state)
        self._jobs = JobRecords(state)
        self._decided = last_decision(state)

    async def note(self, event: MemoryEvent, *, again: bool) -> None:
        """Note the end of a write that was kept, now or before. It is decided ``again`` by itself once others are.

        The write ends all the same where the state is full, and does not take the note: a client can still name it.
        """
        index, now_ms = self._keys.of_id(event.event_id).key("kept-events"), time.time_ns() // 1_000_000
        with suppress(DependencyError):
            if event.status == "kept_verbatim" and _kept_of(event):
                await self._indexes.add(index, {event.event_id: now_ms if again else now_ms + _NO_MORE})
            else:
                await self._indexes.remove(index, event.event_id)

    async def redecide(self, queue: MemoryQueue, event_id: str, *, tenant: str) -> None:
        """Queue a new decision on the kept turns of a write, at the end of its user's lane.

        Raises NotFound, Conflict for a write that was not kept verbatim, Unavailable while the state is nearly full.
        """
        async with queue.lanes.rules.admitting(queue.lanes.name):
            pass
        missing = f"Event {event_id!r} not found."
        owner, status, record = await self._jobs.get(event_id, "tenant", "status", "record")
        if not record or not event_id.startswith("evt_"):
            raise NotFound(missing, param="event_id")
        if owner != tenant:
            raise OtherTenants(missing, param="event_id")
        event = MemoryEvent.model_validate_json(record)
        job = _job_of(event, tenant) if status == "kept_verbatim" else None
        if job is None or not await queue.lanes.requeue(
            job.namespace.lane(),
            event_id,
            record=event.model_copy(update=_WAITS).model_dump_json(),
            created_ms=job.created_ms,
            payload=job.model_dump_json(),
            former=record,
        ):
            raise Conflict("Only a write that was kept verbatim can be decided again.", code="write_not_kept_verbatim")

    async def redecide_due(self, queue: MemoryQueue) -> int:
        """Queue new decisions on writes that were kept before the writer decided another one: 20 of each partition.

        Returns how many. Raises Unavailable.
        """
        if (decided_ms := await self._decided.get("")) is None:
            return 0
        queued = 0
        for part in self._keys.partitions:
            found = await self._indexes.due(part.key("kept-events"), int(decided_ms), most=_AT_ONCE)
            for event_id, tenant in await self._kept(part, found):
                queued += await self._queued(queue, event_id, tenant)
        return queued

    async def redecide_some(self, queue: MemoryQueue, scope: Scope, *, most: int) -> tuple[list[str], bool]:
        """Queue new decisions on kept writes of the scope. Returns their ids, and whether there may be more."""
        queued: list[str] = []
        for part in self._keys.partitions:
            start = 0
            while True:
                found = await self._indexes.ids(part.key("kept-events"), start=start, most=_READ_AT_ONCE)
                for event_id, _ in await self._kept(part, found, of=scope):
                    if len(queued) == most:
                        return queued, True
                    queued += [event_id] if await self._queued(queue, event_id, scope.tenant) else []
                if len(found) < _READ_AT_ONCE:
                    break
                start += _READ_AT_ONCE
        return queued, False

    async def _queued(self, queue: MemoryQueue, event_id: str, tenant: str) -> bool:
        try:
            await self.redecide(queue, event_id, tenant=tenant)
        except (NotFound, Conflict):
            return False
        return True

    async def _kept(self, part: Partition, ids: Sequence[str], *, of: Scope | None = None) -> list[tuple[str, str]]:
        """Return the events that wait for a decision, with their tenants; what has ended otherwise is taken out."""
        kept = list[tuple[str, str]]()
        rows = await self._jobs.some(ids, ["tenant", "status", "user_id", "agent_id", "run_id"])
        for event_id, (tenant, status, *names) in zip(ids, rows, strict=True):
            if status not in _HELD:
                await self._indexes.remove(part.key("kept-events"), event_id)
            elif status == "kept_verbatim":
                wanted = () if of is None else (of.tenant, of.user_id, of.agent_id, of.run_id)
                if all(want in (None, name) for want, name in zip(wanted, (tenant, *names), strict=False)):
                    kept.append((event_id, tenant))
        return kept


def _kept_of(event: MemoryEvent) -> list[MemoryItem]:
    return [written.item for written in event.memories if written.item.memory_type == KEPT]


def _job_of(event: MemoryEvent, tenant: str) -> MemoryJob | None:
    """Return the job that decides again; None for an event without kept memories."""
    if not (kept := _kept_of(event)):
        return None
    first = kept[0]
    return MemoryJob(
        event_id=event.event_id,
        namespace=Namespace(tenant=tenant, user_id=first.user_id, agent_id=first.agent_id, run_id=first.run_id),
        timestamp=max(item.valid_from for item in kept),
        created_at=event.created_at,
        redacted=event.redacted,
        kept=event,
    )
