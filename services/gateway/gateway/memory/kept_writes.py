"""Keeps waiting writes as a process has read them: each chat of a user reads all that wait."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from gateway.memory.jobs import MemoryJob
from memloop.wire.memory import Namespace, PendingTurn

MOST_KEPT: Final = 1024
MOST_KEPT_CHARS: Final = 4096


@dataclass(frozen=True, slots=True)
class QueuedWrite:
    """A queued write: its state, the part of its namespace below the user, and its turns, newest first."""

    status: str
    agent_id: str | None
    run_id: str | None
    turns: tuple[PendingTurn, ...]
    is_short: bool

    @classmethod
    def read(cls, status: str, payload: str) -> "QueuedWrite":
        """Parse the payload of a memory job."""
        job = MemoryJob.model_validate_json(payload)
        space = job.namespace
        turns = tuple(
            PendingTurn(
                status=cast("Literal['queued', 'in_progress']", status),
                event_id=job.event_id,
                role=turn.role,
                content=turn.content,
                timestamp=turn.timestamp or job.timestamp or job.created_at,
                user_id=space.user_id,
                agent_id=space.agent_id,
                run_id=space.run_id,
                name=turn.name,
            )
            for turn in reversed(job.turns)
            if turn.content.strip()
        )
        return cls(status, space.agent_id, space.run_id, turns, len(payload) <= MOST_KEPT_CHARS)

    def within(self, namespace: Namespace) -> bool:
        """Return whether the write lies in the namespace, which has the same user."""
        return namespace.agent_id in (None, self.agent_id) and namespace.run_id in (None, self.run_id)


_NONE: Final[Mapping[str, QueuedWrite]] = {}


class KeptWrites:
    """The writes of the lanes that were read last: at most 1,024 together, of up to 4,096 characters each."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[str, Mapping[str, QueuedWrite]] = OrderedDict()
        self._held = 0

    def of(self, lane: str) -> Mapping[str, QueuedWrite]:
        """Return what is kept of the lane's writes, by id."""
        return self._lanes.get(lane, _NONE)

    def keep(self, lane: str, writes: Mapping[str, QueuedWrite]) -> None:
        """Keep the lane's short writes in place of those kept before; the lanes that were read first make room."""
        self._held -= len(self._lanes.pop(lane, _NONE))
        if short := {job_id: write for job_id, write in writes.items() if write.is_short}:
            self._lanes[lane] = short
            self._held += len(short)
        while self._held > MOST_KEPT:
            self._held -= len(self._lanes.popitem(last=False)[1])
