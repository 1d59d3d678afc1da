"""Reads the dead letters of a queue, and deletes those whose jobs have expired.

A dead letter that can be requeued keeps its payload, and so the bytes of its tenant's quota. Redis deletes its job when
it expires; the sweep then releases the bytes and deletes the letter and its entry in the user's list.
"""

from dataclasses import dataclass
from typing import Any, Final

from memloop_state.link import State
from memloop_state.partitions import Partition, Partitions
from memloop_state.queue.records import lane_steps
from memloop_state.values import Streams

_LOOKED_AT: Final = 1000


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A job that failed on its last attempt. ``entry`` is its id in the stream, which begins with the time in ms."""

    entry: str
    job_id: str
    error: str
    tenant: str
    index: str
    held_bytes: str


async def read_dead_letters(redis: State, partition: Partition, *, after: str, count: int) -> list[DeadLetter]:
    """Return the partition's dead letters after an entry, oldest first; empty ``after``: the oldest ones.

    Raises Unavailable.
    """
    found = await Streams(redis).after(partition.key("dead"), after, most=count)
    return [
        DeadLetter(
            entry,
            fields["job"],
            fields["error"],
            tenant=fields.get("tenant", ""),
            index=fields.get("index", ""),
            held_bytes=fields.get("bytes", "0"),
        )
        for entry, fields in found
    ]


async def dead_letter_count(redis: State) -> int:
    """Return the number of dead letters of all queues. Raises Unavailable."""
    return sum([await Streams(redis).count(partition.key("dead")) for partition in Partitions(redis).partitions])


class ExpiredLetters:
    """Deletes the dead letters of all queues whose jobs have expired. Remembers how far it has looked."""

    def __init__(self, redis: State) -> None:
        self._redis: Any = redis
        self._partitions = Partitions(redis).partitions
        self._after = dict.fromkeys(self._partitions, "")
        self._step = lane_steps(redis)

    async def sweep(self) -> int:
        """Look at the next thousand letters of each partition. Returns how many were deleted. Raises Unavailable."""
        return sum([await self._sweep(partition) for partition in self._partitions])

    async def _sweep(self, partition: Partition) -> int:
        letters = await read_dead_letters(self._redis, partition, after=self._after[partition], count=_LOOKED_AT)
        self._after[partition] = letters[-1].entry if len(letters) == _LOOKED_AT else ""
        return sum([await self._dropped(partition, letter) for letter in letters])

    async def _dropped(self, partition: Partition, letter: DeadLetter) -> int:
        index = [letter.index] if letter.index else []
        keys = [partition.key("dead"), partition.job(letter.job_id), partition.key("queued-bytes"), *index]
        return await self._step.number(
            "drop_letter", keys, [letter.entry, letter.job_id, letter.tenant, letter.held_bytes]
        )
