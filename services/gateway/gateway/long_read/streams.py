"""Reads the event streams that this process's clients follow, all of a partition's with one blocking command.

However many clients follow a read, one reader reads its stream. They share its latest events; who falls behind, or
joins late, reads the missing ones from the stream by itself. The reader runs only while there are followers, and holds
one connection.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from memloop.wire.errors import MemloopError, Unavailable
from memloop.wire.long_read import ReadEvent
from memloop_state.indexes import Streams
from memloop_state.link import RETRY_AFTER_S, State
from memloop_state.queue.records import JobRecords

_LOG = logging.getLogger(__name__)
_SHARED: Final = 64
"""The latest events of a stream that stay in memory for its followers."""
_PAGE: Final = 64
_CHECK_EVERY_S: Final = 1.0
_PACE_S: Final = 0.05
"""How long the reader waits at least before it takes in new streams: each time costs a connection."""
_UNDER_WAY: Final = ("queued", "in_progress")


class Entry:
    """A stored event: entry ``n`` of the stream has the sequence number ``n - 1``."""

    def __init__(self, id_: str, raw: str) -> None:
        self.id = id_
        self.number = _number(id_)
        self.raw = raw

    @cached_property
    def event(self) -> ReadEvent:
        """The event, parsed once for all followers."""
        return ReadEvent.model_validate_json(self.raw)


@dataclass(slots=True, eq=False)
class _Followed:
    """A stream that clients follow: its job, the id of its last entry, and its latest entries.

    All that came after the number ``shared_after`` are in ``latest``. Once it ``is_over``, no more events will come
    than are stored by then. ``news`` is set, and replaced, whenever any of this changes.
    """

    job: str
    position: str
    shared_after: int
    latest: deque[Entry] = field(default_factory=lambda: deque[Entry](maxlen=_SHARED))
    news: asyncio.Event = field(default_factory=asyncio.Event)
    followers: int = 0
    seemed_over: bool = False
    is_over: bool = False
    error: MemloopError | None = None

    def add(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if len(self.latest) == _SHARED:
                self.shared_after = self.latest[0].number
            self.latest.append(entry)
            self.position = entry.id
        self._wake()

    def end(self, error: MemloopError | None = None) -> None:
        self.is_over, self.error = True, error
        self._wake()

    def _wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()


class StreamReader:
    """Reads the followed streams of one partition. ``wait_s`` bounds the wait of one read."""

    def __init__(self, state: State, *, wait_s: float) -> None:
        self._streams = Streams(state)
        self._wait_ms = max(1, int(wait_s * 1000))
        self._jobs = JobRecords(state)
        self._followed: dict[str, _Followed] = {}
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Timeout | None = None
        self._began = 0.0

    async def entries(self, stream: str, *, job: str, after: int) -> AsyncGenerator[Entry]:
        """Yield the entries after that number, each once and in order, to the stream's end. Raises Unavailable."""
        async with self.joined(stream, job=job) as followed:
            while True:
                if followed.error is not None:
                    raise followed.error
                news, is_over, shared_after = followed.news, followed.is_over, followed.shared_after
                if is_over or after < shared_after:
                    async for entry in self.stored(stream, after):
                        after = entry.number
                        yield entry
                    if is_over:
                        return
                    after = max(after, shared_after)  # a deleted stream has nothing
                    continue  # more may have come than is shared
                for entry in list(followed.latest):
                    if entry.number > after:
                        after = entry.number
                        yield entry
                await news.wait()

    @asynccontextmanager
    async def joined(self, stream: str, *, job: str) -> AsyncGenerator[_Followed]:
        """Follow the stream during the block. Raises Unavailable."""
        followed = self._followed.get(stream)
        if followed is None:
            # The id of the last entry, where the reader starts. Another follower may begin meanwhile
            position = await self._streams.last(stream) or "0-0"
            followed = self._followed.setdefault(stream, _Followed(job, position, _number(position)))
            if self._task is None:
                self._task = asyncio.create_task(self._read(), name="event streams")
                self._task.add_done_callback(self._ended)
            elif self._looking is not None and not self._looking.expired():
                self._looking.reschedule(max(asyncio.get_running_loop().time(), self._began + _PACE_S))
        followed.followers += 1
        try:
            yield followed
        finally:
            followed.followers -= 1
            if not followed.followers and self._followed.get(stream) is followed:
                del self._followed[stream]
            if not self._followed:
                # No client follows: give the connection back
                task, self._task = self._task, None
                if task is not None:
                    task.cancel()
                    await asyncio.wait({task})

    async def stored(self, stream: str, after: int) -> AsyncGenerator[Entry]:
        """Yield the entries after that number that the stream holds now, page by page. Raises Unavailable."""
        full = True
        while full:
            page = _entries(await self._streams.after(stream, f"0-{after}", most=_PAGE))
            full = len(page) == _PAGE
            for entry in page:
                after = entry.number
                yield entry

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """Pass the reader's error to every follower; the next one starts a new reader."""
        if task.cancelled() or task is not self._task:
            return
        failure = task.exception()
        if not isinstance(failure, MemloopError):
            _LOG.error("the reader of event streams failed", exc_info=failure)
            failure = Unavailable("The events cannot be read now.", retry_after_s=RETRY_AFTER_S)
        every, self._followed, self._task = self._followed, {}, None
        for followed in every.values():
            followed.end(failure)

    async def _read(self) -> None:
        checked_at = time.monotonic()
        while True:
            for stream, entries in await self._look():
                if (followed := self._followed.get(stream)) is not None:
                    followed.add(entries)
            if time.monotonic() - checked_at >= _CHECK_EVERY_S:
                # End the streams of ended or deleted reads, which may lack their last event
                every = list(self._followed.values())
                found = await self._jobs.some([followed.job for followed in every], ["status"])
                for followed, (status,) in zip(every, found, strict=True):
                    if status in _UNDER_WAY:
                        followed.seemed_over = False
                    elif followed.seemed_over:
                        followed.end()
                    else:
                        followed.seemed_over = True  # its last event may be on its way
                checked_at = time.monotonic()

    async def _look(self) -> Sequence[tuple[str, Sequence[Entry]]]:
        """Wait for entries of any stream. Returns nothing when streams were added, or without an entry."""
        positions = {stream: followed.position for stream, followed in self._followed.items()}
        self._began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(None) as self._looking:
                news = await self._streams.wait(positions, wait_ms=self._wait_ms, most=_PAGE)
        except TimeoutError:
            return ()
        finally:
            self._looking = None
        return [(stream, _entries(found)) for stream, found in news]


def _number(id_: str) -> int:
    return int(id_.partition("-")[2])


def _entries(found: Sequence[tuple[str, dict[str, str]]]) -> list[Entry]:
    return [Entry(id_, fields["event"]) for id_, fields in found]
