"""The slice in one value: everything that reading a document takes; and how a client follows a read."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias, TypeVar

from gateway.engine import Backend
from gateway.files import Files
from gateway.long_read.records import TERMINAL, TIERS, ReadRecords
from gateway.long_read.streams import Entry, StreamReader
from gateway.memory import Memory
from gateway.metrics import Metrics
from gateway.queue import LaneQueue
from gateway.settings import GatewaySettings
from gateway.webhooks.webhooks import Webhooks
from memloop.wire.errors import MemloopError, Overloaded, RateLimited
from memloop.wire.long_read import LongRead, ReadEvent
from memloop_service import of_app
from memloop_service.http import EventStream, Outlet, error_event
from memloop_state.link import State
from memloop_state.steps import Partitions

_RETRY_AFTER_S: Final = 5.0
_MAX_SEQUENCE: Final = 2**63 - 1
_Event = TypeVar("_Event")


def sent(
    events: AsyncGenerator[_Event], shown: Callable[[_Event], bytes], *, seat: ExitStack, heartbeat_s: float
) -> EventStream:
    """Return a stream of events that keeps its seat to the end; an error is its last event."""

    async def send(out: Outlet) -> None:
        async with aclosing(events):
            try:
                async for event in events:
                    await out.send(shown(event))
            except MemloopError as error:
                await out.send(error_event(error))

    return EventStream(send, heartbeat_s=heartbeat_s, owns=seat)


class Followers:
    """Those who follow reads through this process: so many at a time in all, and of one tenant."""

    def __init__(self, state: State, metrics: Metrics, *, most: int, of_tenant: int, look_s: float) -> None:
        self._metrics = metrics
        self._most, self._of_tenant = most, of_tenant
        self._taken: Counter[str] = Counter()
        self._keys = Partitions(state)
        self._readers = {part.tag: StreamReader(state, wait_s=look_s) for part in self._keys.partitions}

    @contextmanager
    def seat(self, tenant: str) -> Generator[None]:
        """Room for one follower. Raises RateLimited over the tenant's share, Overloaded when the process is full."""
        if self._taken[tenant] >= self._of_tenant:
            self._metrics.longread_followers_refused.labels("tenant").inc()
            message = f"{self._of_tenant} streams of your reads are open. Close some, or ask for reads without stream."
            raise RateLimited(message, code="too_many_streams", retry_after_s=_RETRY_AFTER_S)
        if self._taken.total() >= self._most:
            self._metrics.longread_followers_refused.labels("process").inc()
            raise Overloaded("This process sends all the streams that it may.", retry_after_s=_RETRY_AFTER_S)
        self._taken[tenant] += 1
        self._metrics.longread_followers.inc()
        try:
            yield
        finally:
            self._metrics.longread_followers.dec()
            self._taken[tenant] -= 1
            if not self._taken[tenant]:
                del self._taken[tenant]

    async def follow(self, read: LongRead, *, starting_after: int = -1) -> AsyncGenerator[ReadEvent]:
        """The read's events after that sequence number, as they come, to its end. Raises Unavailable.

        The stream of a read that is deleted meanwhile just ends.
        """
        async for entry in self.entries(read.id, is_over=read.status in TERMINAL, starting_after=starting_after):
            yield entry.event
            # Whether it is the last event of its read
            if entry.event.read is not None and entry.event.read.status in TERMINAL:
                return

    async def entries(self, job_id: str, *, is_over: bool, starting_after: int = -1) -> AsyncGenerator[Entry]:
        """The events of any job that has a stream of them, as ``follow`` has a read's. Raises Unavailable."""
        here = self._keys.of_id(job_id)
        reader, stream = self._readers[here.tag], here.events(job_id)
        last = min(starting_after + 1, _MAX_SEQUENCE)
        entries = reader.stored(stream, last) if is_over else reader.entries(stream, job=job_id, after=last)
        async for entry in entries:
            yield entry


READS_QUEUE = "reads"


@dataclass(frozen=True, slots=True)
class Reading:
    """Long reads. ``queue`` holds the background ones; ``max_chars`` is the longest document in a body."""

    backend: Backend
    queue: LaneQueue
    records: ReadRecords
    followers: Followers
    memory: Memory
    files: Files
    webhooks: Webhooks
    max_chars: int


def open_reading(
    settings: GatewaySettings, state: State, *, backend: Backend, memory: Memory, files: Files, webhooks: Webhooks
) -> Reading:
    """Builds the slice from the settings."""
    keep_ms = int(settings.long_read_keep_s * 1000)
    queue = LaneQueue(state, READS_QUEUE, keep_ms=keep_ms, tiers=TIERS, rules=files.queue.rules)
    records = ReadRecords(state, queue, webhooks.queue)
    most, of_tenant = settings.max_followers, settings.tenant_followers
    return Reading(
        backend=backend,
        queue=queue,
        records=records,
        followers=Followers(state, backend.metrics, most=most, of_tenant=of_tenant, look_s=settings.look_s),
        memory=memory,
        files=files,
        webhooks=webhooks,
        max_chars=settings.max_document_chars,
    )


ReadingDep: TypeAlias = Annotated[Reading, of_app("reading")]
