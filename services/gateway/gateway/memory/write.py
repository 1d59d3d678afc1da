"""Runs a memory write from the queued job to its event: raw turns, MemReader's decisions, stored memories.

Every step is repeatable, so a write that crashed at any point completes on the next run:

1. the initial buffer goes into the journal (the first run's stays);
2. the turns are stored as raw turns (the store ignores a repeated event id);
3. MemReader decides over buffered and new turns, and relates new memories to stored neighbours; the replies, then the
   decision, go into the journal;
4. memories are stored under the event id, and the buffer is *replaced* by the turns that the decisions leave buffered;
5. one script stores the final event, ends the job and frees the lane (``LaneQueue.finish``).

If the turns exceed one window or the profile's ``turns_per_decision``, they are decided in several rounds, each with
the turns that the previous one left buffered. A round whose reply is truncated at its token limit is split in half.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from redis.asyncio import Redis

from gateway.memory.failures import WriteFailures
from gateway.memory.jobs import MemoryJob
from gateway.memory.rounds import Round, Start, Stored, ended_event, failed_event, round_of
from gateway.memory.turn_batches import BufferLimits, batches, conversation_room, newest_within
from gateway.memory.verbatim import adds_of, groups, slices
from gateway.metrics import Metrics
from gateway.policy import Keeper, with_rules
from gateway.queue import Hold, JobGone, JobResult, Journal, JournalCheckpoints, Keys, Lease
from gateway.traces import RecordedIndex, RecordedModel, Recording, Served, TraceKeeper
from memloop.loops.decisions import DecisionResult
from memloop.loops.journal import Journaled
from memloop.loops.memreader import decide
from memloop.loops.relating import relate
from memloop.ports import ChatModel, Splitter
from memloop.profiles import Profile
from memloop.wire.errors import MemloopError
from memloop.wire.memory import Buffer, MemoryDraft, Namespace, Source, StoreAdd, Written
from memloop.wire.memory_events import MemoryEvent
from memloop_clients.store import NamespaceIndex, StoreClient
from memloop_service.records import Owner
from memloop_service.redis_link import redis_errors
from memloop_service.redis_scripts import text


class InvalidDecision(MemloopError):
    """The model returned no usable decision; the run counts as a failed attempt."""


@dataclass(frozen=True, slots=True)
class WriterTools:
    """The dependencies of a write."""

    redis: Redis
    store: StoreClient
    model: ChatModel
    profile: Profile
    splitter: Splitter
    metrics: Metrics
    limits: BufferLimits
    traces: TraceKeeper
    served: Served
    keeper: Keeper

    async def under_policy(self, namespace: Namespace) -> "WriterTools":
        """Return the tools whose profile has the rules of the namespace's policies. Raises Unavailable."""
        policy = (await self.keeper.redactions(namespace.tenant, [namespace])).policy(namespace)
        return replace(self, profile=with_rules(self.profile, policy, self.splitter))


class MemoryWrite:
    """One run of one job."""

    def __init__(self, job: MemoryJob, tools: WriterTools, hold: Hold, *, attempt: int) -> None:
        self._job = job
        self._tools = tools
        self._hold = hold
        self._attempt = attempt
        self._journal = Journal(tools.redis, job.event_id)
        self._room = conversation_room(tools.profile, tools.splitter) // 2
        self._limits = tools.limits.within(self._room)

    async def run(self) -> MemoryEvent:
        """Run the write and return its completed event. Raises InvalidDecision and the errors of its dependencies."""
        if not self._job.infer:
            memories = await self._store_verbatim()
            return ended_event(self._job, "completed", attempts=self._attempt + 1, memories=memories)
        return await self._infer()

    async def _infer(self) -> MemoryEvent:
        start = await self._started_from()
        await self._store_raw_turns()
        buffered = newest_within(
            start.turns, splitter=self._tools.splitter, most_tokens=self._room, lines=self._tools.profile.turns
        )
        rounds: list[Round] = []
        memories: list[Written] = []
        waiting = deque(self._batches(buffered))
        while waiting:
            number, shown = len(rounds), (*buffered, *waiting.popleft())
            decided = await self._decided(number, shown)
            rounds.append(decided)
            memories += await self._stored(number, decided, shown)
            buffered = shown if decided.action == "buffer" else ()
            if decided.action == "split":
                waiting.extendleft((shown[len(shown) // 2 :], shown[: len(shown) // 2]))
        await self._put_buffer(before=start.turns, after=buffered, reason=rounds[-1].reason if rounds else "")
        return ended_event(self._job, "completed", attempts=self._attempt + 1, rounds=rounds, memories=memories)

    def _batches(self, buffered: Sequence[Source]) -> list[tuple[Source, ...]]:
        spoken = [turn for turn in self._job.turns if turn.content.strip()]
        profile = self._tools.profile
        runs = batches(
            spoken,
            splitter=self._tools.splitter,
            most_tokens=self._room,
            most_turns=profile.turns_per_decision,
            lines=profile.turns,
        )
        return runs or ([()] if buffered else [])

    async def _started_from(self) -> Start:
        known = await self._journal.read("start")
        if known is None:
            turns = await self._buffered_turns()
            known = await self._journal.keep("start", Start(turns=turns).model_dump_json())
        return Start.model_validate_json(known)

    async def _buffered_turns(self) -> tuple[Source, ...]:
        namespace = self._job.namespace
        page = await self._tools.store.buffers(namespace.tenant, user_id=namespace.user_id)
        return next((buffer.turns for buffer in page.buffers if buffer.namespace == namespace), ())

    async def _store_raw_turns(self) -> None:
        drafts = [
            (turn, _raw_turn(turn, key=f"{self._job.event_id}:{number}"))
            for number, turn in enumerate(self._job.turns)
            if turn.content.strip()
        ]
        for part, pairs in enumerate(groups(drafts)):
            await self._add(
                [draft for _, draft in pairs],
                event_id=f"{self._job.event_id}:raw:{part}",
                timestamp=pairs[0][0].timestamp,
                expires_at=self._job.expires_at,
            )

    async def _store_verbatim(self) -> list[Written]:
        memories: list[Written] = []
        for add in adds_of(self._job, token=self._hold.token):
            await self._hold.check()
            memories += (await self._tools.store.add(add)).results
        return memories

    async def _decided(self, number: int, turns: Sequence[Source]) -> Round:
        """Return the round's decision from the journal or the model. An invalid one is recorded and raised."""
        known = await self._journal.read(f"decision:{number}")
        if known is None:
            decided = await self._decide(number, turns)
            if decided.action == "invalid":
                await self._journal.keep(f"invalid:{self._attempt}", decided.model_dump_json())
                raise InvalidDecision(f"The memory writer returned no usable decision: {decided.reason}")
            known = await self._journal.keep(f"decision:{number}", decided.model_dump_json())
        return Round.model_validate_json(known)

    async def _decide(self, number: int, turns: Sequence[Source]) -> Round:
        """Ask MemReader. Each counted attempt makes new calls; after an outage or crash it reuses the journal."""
        namespace, traces = self._job.namespace, self._tools.traces
        model = Journaled(self._tools.model, JournalCheckpoints(self._journal, scope=f"{self._attempt}:{number}"))
        index = NamespaceIndex(self._tools.store, namespace)
        recording = await traces.new_recording(namespace.tenant)
        result = await decide(
            turns,
            model=RecordedModel(model, recording) if recording else model,
            index=RecordedIndex(index, recording) if recording else index,
            profile=self._tools.profile,
            may_buffer=self._may_buffer(turns),
        )
        if recording:
            await asyncio.shield(self._keep_trace(recording, result, turns, number))
        result = await relate(result, model=model, neighbourhood=index, profile=self._tools.profile)
        self._count(result)
        return round_of(result, splits=len(turns) > 1)

    async def _keep_trace(
        self, recording: Recording, result: DecisionResult, turns: Sequence[Source], number: int
    ) -> None:
        """Keep the decision's trace, unless its user was erased since the lane was taken."""
        trace_id, owner = f"{self._job.event_id}.{number}", Owner(self._job.namespace, self._hold.token)
        await self._tools.traces.keep_write(
            recording, result, turns, trace_id=trace_id, of=owner, served=self._tools.served
        )

    def _may_buffer(self, turns: Sequence[Source]) -> bool:
        """Return whether the turns may stay buffered: not during a flush, nor when there are too many."""
        return not self._job.flushes and self._limits.hold(
            turns, splitter=self._tools.splitter, lines=self._tools.profile.turns
        )

    def _count(self, result: DecisionResult) -> None:
        for record in result.records:
            self._tools.metrics.memory_action.labels(record.action).inc()
            self._tools.metrics.memory_tool_parse.labels(record.parse_path).inc()

    async def _stored(self, number: int, decided: Round, turns: Sequence[Source]) -> tuple[Written, ...]:
        if decided.action != "add":
            return ()
        known = await self._journal.read(f"stored:{number}")
        if known is None:
            stored = Stored(memories=tuple(await self._add_memories(number, decided, turns)))
            known = await self._journal.keep(f"stored:{number}", stored.model_dump_json())
        return Stored.model_validate_json(known).memories

    async def _add_memories(self, number: int, decided: Round, turns: Sequence[Source]) -> list[Written]:
        written: list[Written] = []
        for part, drafts in enumerate(slices(decided.drafts)):
            written += await self._add(
                drafts,
                event_id=f"{self._job.event_id}:{number}:{part}",
                timestamp=_newest_time(turns),
                expires_at=self._job.expires_at,
                sources=turns,
            )
        return written

    async def _put_buffer(self, *, before: tuple[Source, ...], after: tuple[Source, ...], reason: str) -> None:
        namespace, token = self._job.namespace, self._hold.token
        await self._hold.check()
        if after:
            buffer = Buffer(namespace=namespace, turns=after, reason=reason, event_id=self._job.event_id)
            await self._tools.store.put_buffer(buffer, fencing_token=token)
        elif before:
            await self._tools.store.clear_buffer(namespace, fencing_token=token)

    async def _add(
        self,
        drafts: Sequence[MemoryDraft],
        *,
        event_id: str,
        timestamp: datetime | None,
        expires_at: datetime | None,
        sources: Sequence[Source] = (),
    ) -> tuple[Written, ...]:
        await self._hold.check()
        add = StoreAdd(
            namespace=self._job.namespace,
            drafts=tuple(drafts),
            sources=tuple(sources),
            metadata=self._job.metadata,
            timestamp=timestamp or self._job.timestamp or self._job.created_at,
            expires_at=expires_at,
            event_id=event_id,
            fencing_token=self._hold.token,
        )
        return (await self._tools.store.add(add)).results


class MemoryHandler:
    """Runs memory writes."""

    def __init__(
        self,
        redis: Redis,
        metrics: Metrics,
        tools_for: Callable[[Namespace], WriterTools],
        *,
        dead_letter_keep_s: float,
    ) -> None:
        """``tools_for`` chooses the model that decides over a namespace's turns."""
        self._redis = redis
        self._metrics = metrics
        self._tools_for = tools_for
        self._dead_letter_keep_ms = int(dead_letter_keep_s * 1000)
        self._keys = Keys(redis)
        self._failures = WriteFailures(redis)

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Run the write. Raises the errors that make it fail."""
        job = await self._job(lease.job_id)
        async with self._failures.watching(job, self._metrics):
            tools = await self._tools_for(job.namespace).under_policy(job.namespace)
            event = await MemoryWrite(job, tools, hold, attempt=lease.failures).run()
        return JobResult("completed", event.model_dump_json())

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """Return the failed event; payload and journal are kept for an operator, and the store has the raw turns."""
        job = await self._job(lease.job_id)
        event = await failed_event(job, self._redis, attempts=attempts, error=error.message)
        await self._failures.failed(job, error)
        self._metrics.memory_dead_letters.inc()
        return JobResult("failed", event.model_dump_json(), keep_ms=self._dead_letter_keep_ms, keeps_work=True)

    async def cancelled(self, lease: Lease) -> JobResult:
        """Raise JobGone: a memory write cannot be cancelled; erasing it deletes the job."""
        raise JobGone(lease.job_id)

    async def _job(self, job_id: str) -> MemoryJob:
        with redis_errors():
            payload = await self._redis.hget(self._keys.job(job_id), "payload")
        if payload is None:
            raise JobGone(job_id)
        return MemoryJob.model_validate_json(text(payload))


def _raw_turn(turn: Source, *, key: str) -> MemoryDraft:
    return MemoryDraft(key=key, value=turn.said(), memory_type="RawTurn", tags=(turn.role,), source=turn.if_named())


def _newest_time(turns: Sequence[Source]) -> datetime | None:
    return next((turn.timestamp for turn in reversed(turns) if turn.timestamp is not None), None)
