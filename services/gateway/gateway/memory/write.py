"""Runs a memory write from the queued job to its event: raw turns, MemReader's decisions, stored memories.

Every step is repeatable, so a write that crashed at any point completes on the next run:

1. the initial buffer goes into the journal (the first run's stays);
2. the turns are stored as raw turns (the store ignores a repeated event id);
3. MemReader decides over buffered and new turns, and relates new memories to stored neighbours; the replies, then the
   decision, go into the journal;
4. memories are stored under the event id, and the buffer is *replaced* by the turns that the decisions leave buffered;
5. one script stores the final event, ends the job and frees the lane (``LaneQueue.finish``).

Turns on which the model gives no usable decision become memories as they are (``kept_turns``); a later job may decide
on them again.

If the turns exceed one window or the profile's ``turns_per_decision``, they are decided in several rounds, each with
the turns that the previous one left buffered. A round whose reply is truncated at its token limit is split in half.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TypeVar

from gateway.engine import LoopModel
from gateway.memory.jobs import MemoryJob
from gateway.memory.kept_turns import KEPT, kept_drafts, parts_of, still_kept
from gateway.memory.rounds import (
    BufferLimits,
    KeptPart,
    Round,
    Ruler,
    Start,
    Stored,
    adds_of,
    conversation_room,
    ended_event,
    groups,
    named,
    round_of,
    slices,
    store_add,
    told_apart,
    with_rules,
)
from gateway.metrics import Metrics
from gateway.policy import Keeper, redacted_records, redacted_turns
from gateway.queue import Hold, Journal, JournalCheckpoints
from gateway.traces import RecordedIndex, RecordedModel, Served, TraceKeeper
from memloop.loops.journal import Journaled
from memloop.loops.memreader import decide
from memloop.loops.relating import relate
from memloop.ports import ChatModel
from memloop.profiles import Profile
from memloop.wire.errors import NotFound, PreconditionFailed
from memloop.wire.memory import Buffer, GivenToMemories, MemoryDraft, MemoryItem, Namespace, Source, StoreAdd, Written
from memloop.wire.memory_events import MemoryEvent
from memloop_clients.store import NamespaceIndex, StoreClient
from memloop_state.owners import Owner

_Entry = TypeVar("_Entry", Round, Start, Stored)
_UNUSABLE = "The memory writer returned no usable decision"


@dataclass(frozen=True, slots=True)
class WriterTools:
    """The dependencies of a write."""

    journal: Callable[[str], Journal]
    store: StoreClient
    writer: LoopModel
    model: ChatModel
    """The writer as its loop calls it."""
    metrics: Metrics
    limits: BufferLimits
    traces: TraceKeeper
    keeper: Keeper

    async def profile_of(self, namespace: Namespace) -> Profile:
        """Return the writer's profile with the rules of the namespace's policies. Raises Unavailable."""
        policy = (await self.keeper.redactions(namespace.tenant, [namespace])).policy(namespace)
        return with_rules(self.writer.window.profile, policy, self.writer.splitter)


class MemoryWrite:
    """One run of one job. With ``unusable`` the model is not asked any more: what is undecided is kept verbatim."""

    def __init__(
        self,
        job: MemoryJob,
        tools: WriterTools,
        hold: Hold,
        *,
        profile: Profile,
        attempt: int,
        unusable: str | None = None,
    ) -> None:
        self._job = job
        self._tools = tools
        self._hold = hold
        self._profile = profile
        self._ruler = Ruler(tools.writer.splitter, profile.turns)
        self._attempt = attempt
        self._unusable = unusable
        self._journal = tools.journal(job.event_id)
        self._room = conversation_room(profile, tools.writer.splitter) // 2
        self._limits = tools.limits.within(self._room)
        self._hidden = frozenset[str]()

    async def run(self) -> MemoryEvent:
        """Run the write and return its event. Raises the errors of its dependencies."""
        if self._job.kept is not None:
            return await self._redecide(self._job.kept)
        if not self._job.infer:
            adds = adds_of(self._job, token=self._hold.token)
            memories = [written for add in adds for written in await self._add(add)]
            return self._ended((), memories)
        return await self._infer()

    async def _infer(self) -> MemoryEvent:
        start = await self._once("start", Start, self._buffered)
        self._room = start.room or self._room
        drafts = [
            (
                turn,
                MemoryDraft(
                    key=f"{self._job.event_id}:{number}",
                    value=turn.said(),
                    memory_type="RawTurn",
                    tags=(turn.role,),
                    source=turn.if_named(),
                ),
            )
            for number, turn in enumerate(self._job.turns)
            if turn.content.strip()
        ]
        for add in self._adds_of(self._job, drafts, "raw"):
            await self._add(add)
        held = start.buffer
        before = self._job if held is None else self._as_given(held)
        buffered = self._ruler.newest_within(held.turns if held is not None else (), most_tokens=self._room)
        waiting = deque[tuple[MemoryJob, tuple[Source, ...], bool]]()
        if buffered and before != self._job:  # what was given with these turns holds for them alone
            waiting.append((before, buffered, False))
            buffered = ()
        waiting += ((self._job, run, True) for run in self._batches(buffered, self._job.turns))
        rounds: list[Round] = []
        memories: list[Written] = []
        while waiting:
            job, run, may_wait = waiting.popleft()
            number, shown = len(rounds), (*buffered, *run)
            decided = await self._decided(number, shown, may_wait=may_wait)
            rounds.append(decided)
            memories += await self._stored(number, decided, shown, job)
            buffered = shown if decided.action == "buffer" else ()
            if decided.action == "split":  # the halves may not wait for each other: they were too much together
                half = len(shown) // 2
                waiting.extendleft(((job, shown[half:], False), (job, shown[:half], False)))
        await self._hold.check()
        owner, token = self._job.namespace, self._hold.token
        if buffered:
            reason = rounds[-1].reason if rounds else ""
            given = self._job.shared_with(GivenToMemories)
            kept = Buffer(namespace=owner, turns=buffered, reason=reason, event_id=self._job.event_id, **given)
            await self._tools.store.put_buffer(kept, fencing_token=token)
        elif held is not None:
            await self._tools.store.clear_buffer(owner, fencing_token=token)
        return self._ended(rounds, memories)

    async def _redecide(self, kept: MemoryEvent) -> MemoryEvent:
        """Decide again on turns that were kept. Those with usable decisions are replaced, the others stay kept.

        The new memories are stored before the kept ones are deleted, so at no moment is neither there.
        """
        parts = (await self._once("start", Start, partial(self._still_kept, kept))).kept
        self._hidden = frozenset(item.id for part in parts for item in part.items)
        decisions: list[tuple[int, Round, tuple[Source, ...]]] = []
        waiting = deque((number, run) for number, part in enumerate(parts) for run in self._batches((), part.turns))
        while waiting:
            part, shown = waiting.popleft()
            decided = await self._decided(len(decisions), shown)
            decisions.append((part, decided, shown))
            if decided.action == "split":
                half = len(shown) // 2
                waiting.extendleft(((part, shown[half:]), (part, shown[:half])))
        undecided = {part for part, decided, _ in decisions if decided.action == "invalid"}
        stay = {item.id for part in undecided for item in parts[part].items}
        memories = [one for one in kept.memories if one.item.memory_type != KEPT or one.item.id in stay]
        for number, (part, decided, shown) in enumerate(decisions):
            if part not in undecided:
                memories += await self._stored(number, decided, shown, self._as_given(parts[part].items[0]))
        for item_id, version in ((item.id, item.version) for part in parts for item in part.items):
            if item_id not in stay:
                await self._hold.check()
                with suppress(NotFound, PreconditionFailed):
                    await self._tools.store.delete(item_id, tenant=self._job.namespace.tenant, if_version=version)
        return self._ended([decided for _, decided, _ in decisions], memories)

    def _as_given(self, turns: Buffer | MemoryItem) -> MemoryJob:
        """Return the job with what was given with buffered or kept turns."""
        return self._job.model_copy(update=turns.shared_with(GivenToMemories))

    def _ended(self, rounds: Sequence[Round], memories: Sequence[Written]) -> MemoryEvent:
        problems = [decided.reason for decided in rounds if decided.action == "invalid"]
        return ended_event(
            self._job,
            "kept_verbatim" if problems else "completed",
            attempts=self._attempt + 1,
            rounds=rounds,
            memories=memories,
            error=(self._unusable or f"{_UNUSABLE}: {problems[0]}") if problems else None,
        )

    def _batches(self, buffered: Sequence[Source], turns: Sequence[Source]) -> list[tuple[Source, ...]]:
        said_at = self._job.timestamp or self._job.created_at
        spoken = [
            turn if turn.timestamp else turn.model_copy(update={"timestamp": said_at})
            for turn in turns
            if turn.content.strip()
        ]
        runs = self._ruler.batches(spoken, most_tokens=self._room, most_turns=self._profile.turns_per_decision)
        return runs or ([()] if buffered else [])

    async def _buffered(self) -> Start:
        namespace = self._job.namespace
        page = await self._tools.store.buffers(namespace.tenant, user_id=namespace.user_id)
        found = next((buffer for buffer in page.buffers if buffer.namespace == namespace), None)
        return Start(buffer=found, room=self._room)

    async def _still_kept(self, event: MemoryEvent) -> Start:
        """Return the turns of the event that are still kept, redacted."""
        namespace = self._job.namespace
        redactions = await self._tools.keeper.redactions(namespace.tenant, [namespace])
        still = [
            KeptPart(turns=redactions.applied(namespace, partial(redacted_turns, turns), turns), items=items)
            for turns, items in parts_of(await still_kept(event, self._tools.store, namespace.tenant))
        ]
        return Start(kept=tuple(still))

    async def _once(self, name: str, kind: type[_Entry], make: Callable[[], Awaitable[_Entry]]) -> _Entry:
        """Return the journal's entry; the first run makes it."""
        known = await self._journal.read(name)
        if known is None:
            known = await self._journal.keep(name, (await make()).model_dump_json())
        return kind.model_validate_json(known)

    async def _decided(self, number: int, turns: Sequence[Source], *, may_wait: bool = True) -> Round:
        """Return the round's decision from the journal or the model."""
        name = f"decision:{named(number, turns)}"
        return await self._once(name, Round, partial(self._decide, number, turns, may_wait=may_wait))

    async def _decide(self, number: int, turns: Sequence[Source], *, may_wait: bool) -> Round:
        """Ask MemReader, if its reply may be usable.

        Each counted attempt makes new calls; after an outage or crash it reuses the journal.
        """
        if self._unusable is not None:
            return Round(action="invalid", reason=self._unusable)
        namespace, traces = self._job.namespace, self._tools.traces
        # Whether the turns may stay buffered: only newly said ones, not too many, and no client waits
        may_wait = may_wait and bool(self._job.turns) and not self._job.settles
        may_buffer = may_wait and self._limits.hold(turns, self._ruler)
        model = Journaled(self._tools.model, JournalCheckpoints(self._journal, scope=f"{self._attempt}:{number}"))
        index = NamespaceIndex(self._tools.store, namespace, hidden=self._hidden)
        recording = await traces.new_recording(namespace.tenant)
        result = await decide(
            turns,
            model=RecordedModel(model, recording) if recording else model,
            index=RecordedIndex(index, recording) if recording else index,
            profile=self._profile,
            may_buffer=may_buffer,
            forms=self._tools.writer.forms,
        )
        if recording:  # it is kept unless its user was erased since the lane was taken
            trace_id, owner = f"{self._job.event_id}.{number}", Owner(self._job.namespace, self._hold.token)
            served = Served(self._tools.writer.id, self._profile.ref)
            kept = traces.keep_write(recording, result, turns, trace_id=trace_id, of=owner, served=served)
            await asyncio.shield(kept)
        drafts = result.decision.drafts if "relate" in self._profile.prompts else ()
        if drafts and any(near := await index.near(drafts)):
            result = await relate(result, near, model=model, profile=self._profile)
        for record in result.records:
            self._tools.metrics.memory_action.labels(record.action).inc()
            self._tools.metrics.memory_tool_parse.labels(record.parse_path).inc()
        self._tools.metrics.show_form(self._tools.writer.id, self._tools.writer.forms.left(self._profile)[0])
        decided = round_of(result, splits=len(turns) > 1, may_buffer=may_buffer)
        redactions = await self._tools.keeper.redactions(namespace.tenant, [namespace])
        return redactions.applied(
            namespace,
            lambda redact: decided.model_copy(
                update={"reason": redact(decided.reason), "records": redacted_records(decided.records, redact)}
            ),
            decided,
        )

    async def _stored(
        self, number: int, decided: Round, turns: Sequence[Source], job: MemoryJob
    ) -> tuple[Written, ...]:
        async def stored() -> Stored:
            written = [await self._add(add) for add in self._adds(number, decided, turns, job)]
            return Stored(memories=tuple(chain.from_iterable(written)))

        if decided.action not in {"add", "invalid"}:
            return ()
        return (await self._once(f"stored:{named(number, turns)}", Stored, stored)).memories

    def _adds(self, number: int, decided: Round, turns: Sequence[Source], job: MemoryJob) -> Iterator[StoreAdd]:
        """Yield the adds of a round's memories, or of its turns word for word when its reply was unusable.

        ``job`` has what was given with the turns.
        """
        place = named(number, turns)
        name = f"again{job.kept.redecided}:{place}" if job.kept else place
        if decided.action == "invalid":
            yield from self._adds_of(job, kept_drafts(turns, key=f"{job.event_id}:{place}"), f"{name}:kept")
        said_at = next((turn.timestamp for turn in reversed(turns) if turn.timestamp is not None), None)
        for part, drafts in enumerate(slices(told_apart(decided.drafts))):
            token = self._hold.token
            yield store_add(job, drafts, f"{name}:{part}", timestamp=said_at, sources=turns, token=token)

    def _adds_of(self, job: MemoryJob, drafts: Iterable[tuple[Source, MemoryDraft]], name: str) -> Iterator[StoreAdd]:
        """Yield the adds of turns that are stored as they are, with their own times."""
        for part, pairs in enumerate(groups(drafts)):
            said_at, some = pairs[0][0].timestamp, [draft for _, draft in pairs]
            yield store_add(job, some, f"{name}:{part}", timestamp=said_at, token=self._hold.token)

    async def _add(self, add: StoreAdd) -> tuple[Written, ...]:
        await self._hold.check()
        return (await self._tools.store.add(add)).results
