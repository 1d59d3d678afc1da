"""Stores a job's replies and decisions in a Redis hash beside the job, so that a repeated run reuses them.

The journal is deleted with its job: writes for an erased job are refused, so no text outlives an erasure.

The events of jobs, in order: the one of number N is entry ``0-(N+1)`` of its job's stream, so it is written once.
"""

from collections.abc import Sequence
from typing import Any

from memloop.loops.journal import dump_completion, load_completion
from memloop.ports import Completion
from memloop_state.link import State, sent
from memloop_state.partitions import Partitions
from memloop_state.queue.jobs import JobGone
from memloop_state.queue.records import lane_steps
from memloop_state.scripts import text
from memloop_state.values import Streams


class Events:
    """The events of all jobs. Methods raise Unavailable when Redis is unreachable."""

    def __init__(self, redis: State) -> None:
        self._keys = Partitions(redis)
        self._streams = Streams(redis)
        self._step = lane_steps(redis)

    async def publish(
        self, job_id: str, events: Sequence[str], *, first: int, record: str = "", keep_ms: int = 0, sure: bool = False
    ) -> bool:
        """Append events, of which the first has that number; one whose number is taken stays as it is.

        With a new last one the job's ``record`` changes. Job and events stay for ``keep_ms`` from now on (0: as
        before). Replicas have the events then if they are to be ``sure``. Returns False when a client has asked for the
        job's end. Raises JobGone.
        """
        here = self._keys.of_id(job_id)
        args = [first, keep_ms, record, *events]
        outcome = await self._step("publish", [here.job(job_id), here.events(job_id)], args, acknowledged=sure)
        if outcome == "gone":
            raise JobGone(job_id)
        return outcome != "cancel"

    async def last(self, job_id: str) -> int:
        """Return the number of a job's last event, -1 where it has none."""
        last = await self._streams.last(self._keys.of_id(job_id).events(job_id))
        return int(last.split("-")[1]) - 1 if last else -1


class Journal:
    """One job's journal. A field never changes once it is set."""

    def __init__(self, redis: State, job_id: str) -> None:
        self._redis: Any = redis
        partition = Partitions(redis).of_id(job_id)
        self._job = partition.job(job_id)
        self._journal = partition.key("journal", job_id)
        self._step = lane_steps(redis)

    async def read(self, field: str) -> str | None:
        """Return the field's value, or None."""
        value = await sent(self._redis, "HGET", self._journal, field)
        return None if value is None else text(value)

    async def fields(self) -> set[str]:
        """Return the names of the fields that are set."""
        fields = await sent(self._redis, "HKEYS", self._journal)
        return {text(field) for field in fields}

    async def all(self) -> dict[str, str]:
        """Return every field and its value."""
        fields = await sent(self._redis, "HGETALL", self._journal)
        return {text(field): text(value) for field, value in fields.items()}

    async def keep(self, field: str, value: str) -> str:
        """Set the field unless it is already set, and return the stored value. Raises JobGone."""
        kept = await self._step("keep", [self._job, self._journal], [field, value])
        if kept is None:
            raise JobGone
        return str(kept)


class JournalCheckpoints:
    """Keeps a loop's ``Checkpoints`` in a job's journal. ``scope`` separates the loops of one job.

    Only the job's holder writes to its journal, so the fields of an earlier run are listed once, not on every call.
    """

    def __init__(self, journal: Journal, *, scope: str) -> None:
        self._journal = journal
        self._scope = scope
        self._left: set[str] | None = None

    async def load(self, key: str) -> Completion | None:
        """Return the reply stored under the key, or None."""
        if self._left is None:
            self._left = await self._journal.fields()
        field = f"call:{self._scope}:{key}"
        value = await self._journal.read(field) if field in self._left else None
        return None if value is None else load_completion(value)

    async def save(self, key: str, completion: Completion) -> None:
        """Store the reply. Raises JobGone, Unavailable."""
        await self._journal.keep(f"call:{self._scope}:{key}", dump_completion(completion).decode())
