"""Reads the turns of a user that are queued or being written, so that a search finds them before a decision is made.

Keeps waiting writes as a process has read them: each chat of a user reads all that wait.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, cast

from pydantic import JsonValue, ValidationError

from gateway.memory.handler import FailedWrite, failed_writes
from gateway.memory.jobs import MEMORY_QUEUE, MemoryJob
from gateway.memory.policed_store import PolicedStore
from gateway.metrics import Metrics
from memloop.chores import beside, patient
from memloop.wire.errors import DependencyError
from memloop.wire.memory import Namespace, PendingTurn, SearchResult, StoreSearch
from memloop_state.link import State
from memloop_state.steps import Partitions, lane_steps, lane_terms, named

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


MOST_WRITES: Final = 50
MOST_BYTES: Final = 262_144
_WORD: Final = re.compile(r"\w{2,}")
_LONGEST_S: Final = 30.0
"""Half of the time for which the queue keeps the time of a lane's last change."""
_IDS: Final = ("user_id", "agent_id", "run_id")
_ANY: Final = "*"
"""In a filter: any id, but one there must be."""
_CLOCK_MARGIN_S: Final = 0.1
"""How far the state's clock may be put forward during a search."""
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Standing:
    """How a user's writes stand: turns without a decision, newest first, and the last write that failed.

    ``newest_token``: see ``LaneQueue.newest_token``; None if the state did not answer. ``changed_s``: the seconds since
    a write of the user last left the queue or an erasure of theirs began; None after a minute without either.
    """

    pending: tuple[PendingTurn, ...] = ()
    failed: FailedWrite | None = None
    newest_token: int | None = None
    changed_s: float | None = None

    @property
    def complete(self) -> bool:
        """Whether the state answered in time; otherwise turns and failures may be missing."""
        return self.newest_token is not None

    def held_for(self, elapsed_s: float) -> bool:
        """Whether nothing had left the queue for that time when it was read; a clock may be wrong by a tenth of a
        second.
        """
        if self.changed_s is None:
            return elapsed_s < _LONGEST_S
        return elapsed_s + _CLOCK_MARGIN_S < self.changed_s


class PendingWrites:
    """The undecided writes of all users, read in one round trip: the newest 50 of a user, of 256 KiB together.

    ``wait_s`` bounds that round trip. The state leaves out the text of writes that this process has read and kept.
    """

    def __init__(self, state: State, *, wait_s: float) -> None:
        self._wait_s = wait_s
        self._failed = failed_writes(state)
        self._keys = Partitions(state)
        self._step = lane_steps(state)
        self._kept = KeptWrites()

    async def of_user(self, namespace: Namespace) -> Standing:
        """Return how the namespace's writes stand, as far as the state answers in time."""
        with suppress(DependencyError, TimeoutError):
            async with patient(self._wait_s):
                lane = namespace.lane()
                kept = self._kept.of(lane)
                states = {job_id: write.status for job_id, write in kept.items()}
                asked = {"most": MOST_WRITES, "bytes": MOST_BYTES, "kept": states, "failed": self._failed.key(lane)}
                args = named(**lane_terms(MEMORY_QUEUE, lane, line=MEMORY_QUEUE), **asked)
                newest, failed, since_ms, *rows = await self._step.rows(
                    "standing", [self._keys.of_name(lane).root], args
                )
                jobs = zip(rows[::3], rows[1::3], rows[2::3], strict=True)
                writes = {
                    job_id: QueuedWrite.read(status, payload) if payload else kept[job_id]
                    for job_id, status, payload in jobs
                }
                self._kept.keep(lane, writes)
                return Standing(
                    pending=tuple(turn for write in writes.values() if write.within(namespace) for turn in write.turns),
                    failed=FailedWrite.model_validate_json(failed) if failed else None,
                    newest_token=int(newest),
                    changed_s=int(since_ms) / 1000 if since_ms else None,
                )
        return Standing()


async def read_beside(
    pending: PendingWrites, namespace: Namespace, search: Callable[[], Awaitable[_Found]]
) -> tuple[Standing, _Found]:
    """Read the user's queue while ``search`` asks the store: each turn accepted before is in one of the two results.

    A write leaves the queue only after it is stored. If none had left it from the start of the search until the queue
    was read, then the search saw all that the queue lacks; otherwise both are read again, the queue first
    (docs/decisions/0068-queue-and-store-are-read-at-once.md). Raises what ``search`` raises.
    """
    began = time.monotonic()
    async with beside(_timed(pending, namespace)) as reading:
        found = await search()
        standing, read_at = await reading
    if not standing.complete or standing.held_for(read_at - began):
        return standing, found
    standing = await pending.of_user(namespace)
    return standing, await search()


async def _timed(pending: PendingWrites, namespace: Namespace) -> tuple[Standing, float]:
    return await pending.of_user(namespace), time.monotonic()


def ranked(turns: Iterable[PendingTurn], query: str) -> Sequence[PendingTurn]:
    """Order the turns by the query's words that they hold; among equals, the user's come first, then the newest."""
    asked = _words(query)
    return sorted(turns, key=lambda turn: (-len(asked & _words(turn.said())), turn.role != "user"))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _searched(asked: StoreSearch) -> Namespace | None:
    """Return the namespace of the search, with the ids that its filter names.

    None without a user, at a time, and where the filter has any other condition: of a turn one cannot yet ask what its
    memories will be.
    """
    if asked.as_of is not None:
        return None
    ids: dict[str, JsonValue] = asked.namespace.model_dump(exclude_none=True)
    waiting: list[JsonValue] = [asked.filters or {}]
    while waiting:
        group = waiting.pop()
        for name, value in group.items() if isinstance(group, dict) else ():
            if name == "AND" and isinstance(value, list):
                waiting += value
            elif name not in _IDS or value == _ANY or ids.setdefault(name, value) != value:
                return None
    with suppress(ValidationError):
        return Namespace.model_validate(ids)
    return None


async def search(asked: StoreSearch, store: PolicedStore, pending: PendingWrites, metrics: Metrics) -> SearchResult:
    """Search the store, and add the turns that wait for a decision. Records the time; raises the store's errors.

    A search with other conditions than ids (see ``_searched``) has none, and is not complete: turns may be missing.
    """
    with metrics.memory_search_seconds.labels("api").time():
        namespace = _searched(asked)
        if namespace is None:
            return (await store.search(asked)).model_copy(update={"pending_complete": False})
        buffered_too = asked.model_copy(update={"namespace": namespace, "include_buffered": True})
        standing, found = await read_beside(pending, namespace, lambda: store.search(buffered_too))
        turns = ranked((*standing.pending, *reversed(found.pending)), asked.query)
        complete = standing.complete and found.pending_complete
        if not complete:
            metrics.pending_unread.inc()
        return found.model_copy(update={"pending": tuple(turns[: asked.top_k]), "pending_complete": complete})
