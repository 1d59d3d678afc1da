"""Stores a job's replies and decisions in a Redis hash beside the job, so that a repeated run reuses them.

The journal is deleted with its job: writes for an erased job are refused, so no text outlives an erasure.
"""

from typing import Any

from memloop.loops.journal import dump_completion, load_completion
from memloop.ports import Completion
from memloop_state.link import State, redis_errors
from memloop_state.partitions import Partitions
from memloop_state.queue.jobs import JobGone
from memloop_state.queue.records import lane_steps
from memloop_state.scripts import text


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
        with redis_errors():
            value = await self._redis.hget(self._journal, field)
        return None if value is None else text(value)

    async def fields(self) -> set[str]:
        """Return the names of the fields that are set."""
        with redis_errors():
            fields = await self._redis.hkeys(self._journal)
        return {text(field) for field in fields}

    async def all(self) -> dict[str, str]:
        """Return every field and its value."""
        with redis_errors():
            fields = await self._redis.hgetall(self._journal)
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
