"""The records of jobs: payload and status, journal and events, and the dead letters of those that failed.

A job shares a tag with its queue, lane, journal, events and index, so that one script may change them. A memory write
takes its place from its user, whose writes share a lane; a file from its tenant; a webhook from its read, since one
step may end both. A read's digits are random, so that a tenant's reads spread over the cluster.

The journal keeps a job's replies and decisions, so that a repeated run reuses them. It is deleted with its job: writes
for an erased job are refused, so no text outlives an erasure. The event of number N is entry ``0-(N+1)`` of its job's
stream, so it is written once.

A job counts towards its tenant's quota of queued bytes from its queueing to its end. A dead letter that can be requeued
keeps its payload, and so those bytes. Redis deletes its job when it expires; the sweep then releases the bytes and
deletes the letter and its entry in the user's list.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from memloop.loops.journal import dump_completion, load_completion
from memloop.ports import Completion
from memloop.wire.base import Wire
from memloop_state.indexes import Streams
from memloop_state.link import State, all_sent, sent
from memloop_state.queue.jobs import JobGone, Lease
from memloop_state.steps import Partition, Partitions, lane_steps, named


async def queued_bytes(redis: State) -> Counter[str]:
    """Return the bytes that the unfinished jobs of all queues hold, by tenant. Raises Unavailable."""
    tenants: Counter[str] = Counter()
    for partition in Partitions(redis).partitions:
        found: Mapping[str, str] = await sent(redis, "HGETALL", partition.key("queued-bytes"))
        tenants.update({tenant: int(size) for tenant, size in found.items()})
    return tenants


W = TypeVar("W", bound=Wire)


class JobRecords:
    """The jobs of all queues, with their events. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State) -> None:
        self._redis: Any = redis
        self.keys = Partitions(redis)
        self._streams = Streams(redis)
        self._step = lane_steps(redis)

    async def some(self, job_ids: Sequence[str], names: Sequence[str]) -> list[list[str]]:
        """Return these fields of each job in one round trip, empty where there is none."""
        rows = await all_sent(self._redis, [("HMGET", self.keys.job(job_id), *names) for job_id in job_ids])
        return [[value or "" for value in row] for row in rows]

    async def get(self, job_id: str, *names: str) -> list[str]:
        """Return these fields of a job, empty where there is none."""
        return (await self.some([job_id], names))[0]

    async def payload(self, job_id: str, kind: type[W]) -> W | None:
        """Return a job's payload, None when the job is over or gone."""
        (payload,) = await self.get(job_id, "payload")
        return kind.model_validate_json(payload) if payload else None

    async def leased(self, lease: Lease, kind: type[W]) -> W:
        """Return the payload of a leased job. Raises JobGone when the job is over or deleted."""
        if (job := await self.payload(lease.job_id, kind)) is None:
            raise JobGone(lease.job_id)
        return job

    async def publish(
        self, job_id: str, events: Sequence[str], *, first: int, record: str = "", keep_ms: int = 0, sure: bool = False
    ) -> bool:
        """Append events, of which the first has that number; one whose number is taken stays as it is.

        With a new last one the job's ``record`` changes. Job and events stay for ``keep_ms`` from now on (0: as
        before). Replicas have the events then if they are to be ``sure``. Returns False when a client has asked for the
        job's end. Raises JobGone.
        """
        here = self.keys.of_id(job_id)
        args = named(*events, id=job_id, first=first, keep_ms=keep_ms or None, record=record or None)
        outcome = await self._step("publish", [here.root], args, acknowledged=sure)
        if outcome == "gone":
            raise JobGone(job_id)
        return outcome != "cancel"

    async def last_event(self, job_id: str) -> int:
        """Return the number of a job's last event, -1 where it has none."""
        last = await self._streams.last(self.keys.of_id(job_id).events(job_id))
        return int(last.split("-")[1]) - 1 if last else -1


class Journal:
    """One job's journal. A field never changes once it is set, so all are read at once, when the first is asked for."""

    def __init__(self, redis: State, job_id: str) -> None:
        self._redis: Any = redis
        self._job_id = job_id
        self._here = Partitions(redis).of_id(job_id)
        self._journal = self._here.key("journal", job_id)
        self._step = lane_steps(redis)
        self._found: Mapping[str, str] | None = None

    async def read(self, field: str) -> str | None:
        """Return the field if it was set when the first was asked for; ``keep`` returns what was set since."""
        if self._found is None:
            self._found = await self.all()
        return self._found.get(field)

    async def all(self) -> dict[str, str]:
        return await sent(self._redis, "HGETALL", self._journal)

    async def keep(self, field: str, value: str) -> str:
        """Set the field unless it is already set, and return the stored value. Raises JobGone."""
        kept = await self._step("keep", [self._here.root], named(id=self._job_id, field=field, value=value))
        if kept is None:
            raise JobGone
        return kept


@dataclass(frozen=True, slots=True)
class JournalCheckpoints:
    """A loop's ``Checkpoints`` in a job's journal. ``scope`` separates the loops of one job."""

    journal: Journal
    scope: str

    async def load(self, key: str) -> Completion | None:
        value = await self.journal.read(f"call:{self.scope}:{key}")
        return None if value is None else load_completion(value)

    async def save(self, key: str, completion: Completion) -> None:
        """Store the reply. Raises JobGone, Unavailable."""
        await self.journal.keep(f"call:{self.scope}:{key}", dump_completion(completion).decode())


_LOOKED_AT: Final = 1000


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A job that failed on its last attempt. ``entry`` is its id in the stream, which begins with the time in ms."""

    entry: str
    job_id: str
    error: str
    tenant: str
    index: str
    held_bytes: int


class DeadLetters:
    """The dead letters of all queues. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State) -> None:
        self._keys = Partitions(redis)
        self._streams = Streams(redis)
        self._step = lane_steps(redis)
        self._swept = dict.fromkeys(self._keys.partitions, "")

    async def page(self, partition: Partition, *, after: str, count: int) -> list[DeadLetter]:
        """Return the partition's dead letters after an entry, oldest first; empty ``after``: the oldest ones."""
        found = await self._streams.after(partition.key("dead"), after, most=count)
        return [
            DeadLetter(entry, of["job"], of["error"], of["tenant"], of["index"], int(of["bytes"]))
            for entry, of in found
        ]

    async def count(self) -> int:
        return sum([await self._streams.count(partition.key("dead")) for partition in self._keys.partitions])

    async def drop(self, letter: DeadLetter) -> None:
        """Delete a dead letter; its job ends by itself."""
        await self._streams.delete(self._keys.of_id(letter.job_id).key("dead"), letter.entry)

    async def sweep(self) -> int:
        """Delete those among the next thousand letters of each partition whose jobs have expired; return how many."""
        dropped = 0
        for partition in self._keys.partitions:
            letters = await self.page(partition, after=self._swept[partition], count=_LOOKED_AT)
            self._swept[partition] = letters[-1].entry if len(letters) == _LOOKED_AT else ""
            for letter in letters:
                job = {"id": letter.job_id, "index": letter.index, "tenant": letter.tenant}
                args = named(**job, entry=letter.entry, bytes=letter.held_bytes)
                dropped += await self._step("drop_letter", [partition.root], args)
        return dropped
