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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from gateway.engine import LoopModel
from gateway.memory.jobs import MemoryJob
from gateway.memory.kept_turns import KEPT, kept_drafts, parts_of, still_kept
from gateway.memory.rounds import (
    BufferLimits,
    KeptPart,
    Round,
    Start,
    Stored,
    adds_of,
    batches,
    conversation_room,
    ended_event,
    groups,
    newest_within,
    round_of,
    slices,
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
from memloop.wire.memory import Buffer, MemoryDraft, Namespace, Source, StoreAdd, Written
from memloop.wire.memory_events import MemoryEvent
from memloop_clients.store import NamespaceIndex, StoreClient
from memloop_state.owners import Owner

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
        self._splitter = tools.writer.splitter
        self._attempt = attempt
        self._unusable = unusable
        self._journal = tools.journal(job.event_id)
        self._room = conversation_room(profile, self._splitter) // 2
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
        known = await self._journal.read("start")
        if known is None:
            namespace = self._job.namespace
            page = await self._tools.store.buffers(namespace.tenant, user_id=namespace.user_id)
            turns = next((buffer.turns for buffer in page.buffers if buffer.namespace == namespace), ())
            known = await self._journal.keep("start", Start(turns=turns).model_dump_json())
        start = Start.model_validate_json(known)
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
        for part, pairs in enumerate(groups(drafts)):
            raw = [draft for _, draft in pairs]
            event_id = f"{self._job.event_id}:raw:{part}"
            await self._add(self._store_add(raw, event_id=event_id, timestamp=pairs[0][0].timestamp))
        buffered = newest_within(
            start.turns, splitter=self._splitter, most_tokens=self._room, lines=self._profile.turns
        )
        rounds: list[Round] = []
        memories: list[Written] = []
        waiting = deque(self._batches(buffered, self._job.turns))
        while waiting:
            number, shown = len(rounds), (*buffered, *waiting.popleft())
            decided = await self._decided(number, shown)
            rounds.append(decided)
            memories += await self._stored(number, decided, shown)
            buffered = shown if decided.action == "buffer" else ()
            if decided.action == "split":
                waiting.extendleft((shown[len(shown) // 2 :], shown[: len(shown) // 2]))
        await self._hold.check()
        owner, token = self._job.namespace, self._hold.token
        if buffered:
            reason = rounds[-1].reason if rounds else ""
            kept = Buffer(namespace=owner, turns=buffered, reason=reason, event_id=self._job.event_id)
            await self._tools.store.put_buffer(kept, fencing_token=token)
        elif start.turns:
            await self._tools.store.clear_buffer(owner, fencing_token=token)
        return self._ended(rounds, memories)

    async def _redecide(self, kept: MemoryEvent) -> MemoryEvent:
        """Decide again on turns that were kept. Those with usable decisions are replaced, the others stay kept.

        The new memories are stored before the kept ones are deleted, so at no moment is neither there.
        """
        known = await self._journal.read("start")
        if known is None:  # the first run of this decision: the turns that are still kept, redacted
            namespace = self._job.namespace
            redactions = await self._tools.keeper.redactions(namespace.tenant, [namespace])
            still = [
                KeptPart(turns=redactions.applied(namespace, partial(redacted_turns, turns), turns), items=items)
                for turns, items in parts_of(await still_kept(kept, self._tools.store, namespace.tenant))
            ]
            known = await self._journal.keep("start", Start(kept=tuple(still)).model_dump_json())
        parts = Start.model_validate_json(known).kept
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
            memories += await self._stored(number, decided, shown) if part not in undecided else ()
        for item_id, version in ((item.id, item.version) for part in parts for item in part.items):
            if item_id not in stay:
                await self._hold.check()
                with suppress(NotFound, PreconditionFailed):
                    await self._tools.store.delete(item_id, tenant=self._job.namespace.tenant, if_version=version)
        return self._ended([decided for _, decided, _ in decisions], memories)

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
        profile = self._profile
        runs = batches(
            spoken,
            splitter=self._splitter,
            most_tokens=self._room,
            most_turns=profile.turns_per_decision,
            lines=profile.turns,
        )
        return runs or ([()] if buffered else [])

    async def _decided(self, number: int, turns: Sequence[Source]) -> Round:
        """Return the round's decision from the journal or the model."""
        known = await self._journal.read(f"decision:{number}")
        if known is None:
            if self._unusable is not None:
                decided = Round(action="invalid", reason=self._unusable)
            else:
                decided = await self._decide(number, turns)
            known = await self._journal.keep(f"decision:{number}", decided.model_dump_json())
        return Round.model_validate_json(known)

    async def _decide(self, number: int, turns: Sequence[Source]) -> Round:
        """Ask MemReader. Each counted attempt makes new calls; after an outage or crash it reuses the journal."""
        namespace, traces = self._job.namespace, self._tools.traces
        # Whether the turns may stay buffered: only newly said ones, not too many, and no client waits
        may_buffer = (
            bool(self._job.turns)
            and not self._job.settles
            and self._limits.hold(turns, splitter=self._splitter, lines=self._profile.turns)
        )
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

    async def _stored(self, number: int, decided: Round, turns: Sequence[Source]) -> tuple[Written, ...]:
        if decided.action not in {"add", "invalid"}:
            return ()
        known = await self._journal.read(f"stored:{number}")
        if known is None:
            written: list[Written] = []
            for add in self._adds(number, decided, turns):
                written += await self._add(add)
            known = await self._journal.keep(f"stored:{number}", Stored(memories=tuple(written)).model_dump_json())
        return Stored.model_validate_json(known).memories

    def _adds(self, number: int, decided: Round, turns: Sequence[Source]) -> Iterator[StoreAdd]:
        """Yield the adds of a round's memories, or of its turns word for word when its reply was unusable."""
        event_id = f"{self._job.event_id}{f':again{self._job.kept.redecided}' if self._job.kept else ''}:{number}"
        if decided.action == "invalid":
            kept = list(kept_drafts(turns, key=f"{self._job.event_id}:{number:04}"))
            for part, pairs in enumerate(groups(kept)):
                drafts = [draft for _, draft in pairs]
                yield self._store_add(drafts, event_id=f"{event_id}:kept:{part}", timestamp=pairs[0][0].timestamp)
        said_at = next((turn.timestamp for turn in reversed(turns) if turn.timestamp is not None), None)
        for part, drafts in enumerate(slices(decided.drafts)):
            yield self._store_add(drafts, event_id=f"{event_id}:{part}", timestamp=said_at, sources=turns)

    def _store_add(
        self,
        drafts: Sequence[MemoryDraft],
        *,
        event_id: str,
        timestamp: datetime | None,
        sources: Sequence[Source] = (),
    ) -> StoreAdd:
        return StoreAdd(
            namespace=self._job.namespace,
            drafts=tuple(drafts),
            sources=tuple(sources),
            metadata=self._job.metadata,
            timestamp=timestamp or self._job.timestamp or self._job.created_at,
            expires_at=self._job.expires_at,
            event_id=event_id,
            fencing_token=self._hold.token,
        )

    async def _add(self, add: StoreAdd) -> tuple[Written, ...]:
        await self._hold.check()
        return (await self._tools.store.add(add)).results
