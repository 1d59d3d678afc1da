"""Reads the event streams that this process's clients follow, all of a partition's with one blocking command.

However many clients follow a read, one reader reads its stream. The reader passes each event to a bounded queue per
follower. A follower that falls behind, or joins late, reads the missing events from the stream by itself. The
reader runs only while there are followers, and holds one connection.
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
_MOST_WAITING: Final = 64
"""Events that a slow follower may have waiting in memory; it reads the rest from the stream when it gets there."""
_PAGE: Final = 64
_CHECK_EVERY_S: Final = 1.0
_PACE_S: Final = 0.05
"""How long the reader waits at least before it takes in new streams: each time costs a connection."""
_UNDER_WAY: Final = ("queued", "in_progress")


class Entry:
    """A stored event: entry ``n`` of the stream has the sequence number ``n - 1``."""

    def __init__(self, id_: str, raw: str) -> None:
        self.id = id_
        self.number = int(id_.partition("-")[2])
        self.raw = raw

    @cached_property
    def event(self) -> ReadEvent:
        """The event, parsed once for all followers."""
        return ReadEvent.model_validate_json(self.raw)


class Follower:
    """One client's position in a stream: the events since its last call, or the fact that it missed some."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._missed = True
        self._news = asyncio.Event()
        self._error: MemloopError | None = None
        self.is_over = False
        """No more events will come than are stored by now."""

    def offer(self, entry: Entry) -> None:
        """Hand over an event. When the queue is full, the follower reads on from the stream."""
        if len(self._entries) == _MOST_WAITING:
            self._entries.clear()
            self._missed = True
        if not self._missed:
            self._entries.append(entry)
        self._news.set()

    def end(self, error: MemloopError | None = None) -> None:
        """Mark the end: no event follows."""
        self.is_over = self._missed = True
        self._error = error
        self._news.set()

    async def news(self) -> None:
        """Wait for an event or the end. Raises the reader's error."""
        await self._news.wait()
        self._news.clear()
        if self._error is not None:
            raise self._error

    def missed(self) -> bool:
        """Return whether events must be read from the stream; after the call new ones are handed over again."""
        missed, self._missed = self._missed, False
        return missed

    def taken(self) -> Sequence[Entry]:
        """Return the events handed over since the last call."""
        found = list(self._entries)
        self._entries.clear()
        return found


@dataclass(slots=True, eq=False)
class _Channel:
    """A followed stream: its job, the id of the last entry read, and its followers."""

    job: str
    position: str
    seemed_over: bool = False
    followers: set[Follower] = field(default_factory=set[Follower])

    def offer(self, entry: Entry) -> None:
        self.position = entry.id
        for follower in self.followers:
            follower.offer(entry)

    def end(self, error: MemloopError | None = None) -> None:
        for follower in self.followers:
            follower.end(error)


class StreamReader:
    """Reads the followed streams of one partition. ``wait_s`` bounds the wait of one read."""

    def __init__(self, state: State, *, wait_s: float) -> None:
        self._streams = Streams(state)
        self._wait_ms = max(1, int(wait_s * 1000))
        self._jobs = JobRecords(state)
        self._channels: dict[str, _Channel] = {}
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Timeout | None = None
        self._began = 0.0

    @asynccontextmanager
    async def joined(self, stream: str, *, job: str) -> AsyncGenerator[Follower]:
        """Follow the stream during the block. Raises Unavailable."""
        follower = Follower()
        # The id of the last entry, where the reader starts
        channel = self._channels.get(stream) or self._opened(stream, job, await self._streams.last(stream) or "0-0")
        channel.followers.add(follower)
        try:
            yield follower
        finally:
            channel.followers.discard(follower)
            if not channel.followers and self._channels.get(stream) is channel:
                del self._channels[stream]
            if not self._channels:
                # No client follows: give the connection back
                task, self._task = self._task, None
                if task is not None:
                    task.cancel()
                    await asyncio.wait({task})

    async def entries(self, stream: str, follower: Follower, after: int) -> AsyncGenerator[Entry]:
        """Yield the entries after that number, each once and in order, to the stream's end. Raises Unavailable."""
        while True:
            is_over = follower.is_over
            if follower.missed():
                async for entry in self.stored(stream, after):
                    after = entry.number
                    yield entry
            for entry in follower.taken():
                if entry.number > after:
                    after = entry.number
                    yield entry
            if is_over:
                return
            await follower.news()

    async def stored(self, stream: str, after: int) -> AsyncGenerator[Entry]:
        """Yield the entries after that number that the stream holds now, page by page. Raises Unavailable."""
        full = True
        while full:
            page = _entries(await self._streams.after(stream, f"0-{after}", most=_PAGE))
            full = len(page) == _PAGE
            for entry in page:
                after = entry.number
                yield entry

    def _opened(self, stream: str, job: str, position: str) -> _Channel:
        """Return the stream's channel, which another follower may have opened meanwhile."""
        channel = self._channels.setdefault(stream, _Channel(job, position))
        if self._task is None:
            self._task = asyncio.create_task(self._read(), name="event streams")
            self._task.add_done_callback(self._ended)
        elif self._looking is not None and not self._looking.expired():
            self._looking.reschedule(max(asyncio.get_running_loop().time(), self._began + _PACE_S))
        return channel

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """Pass the reader's error to every follower; the next one starts a new reader."""
        if task.cancelled() or task is not self._task:
            return
        failure = task.exception()
        if not isinstance(failure, MemloopError):
            _LOG.error("the reader of event streams failed", exc_info=failure)
            failure = Unavailable("The events cannot be read now.", retry_after_s=RETRY_AFTER_S)
        channels, self._channels, self._task = self._channels, {}, None
        for channel in channels.values():
            channel.end(failure)

    async def _read(self) -> None:
        checked_at = time.monotonic()
        while True:
            for stream, entries in await self._look():
                if (channel := self._channels.get(stream)) is not None:
                    for entry in entries:
                        channel.offer(entry)
            if time.monotonic() - checked_at >= _CHECK_EVERY_S:
                # End the streams of ended or deleted reads, which may lack their last event
                channels = list(self._channels.values())
                found = await self._jobs.some([channel.job for channel in channels], ["status"])
                for channel, (status,) in zip(channels, found, strict=True):
                    if status in _UNDER_WAY:
                        channel.seemed_over = False
                    elif channel.seemed_over:
                        channel.end()
                    else:
                        channel.seemed_over = True  # its last event may be on its way
                checked_at = time.monotonic()

    async def _look(self) -> Sequence[tuple[str, Sequence[Entry]]]:
        """Wait for entries of any stream. Returns nothing when streams were added, or without an entry."""
        positions = {stream: channel.position for stream, channel in self._channels.items()}
        self._began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(None) as self._looking:
                news = await self._streams.wait(positions, wait_ms=self._wait_ms, most=_PAGE)
        except TimeoutError:
            return ()
        finally:
            self._looking = None
        return [(stream, _entries(found)) for stream, found in news]


def _entries(found: Sequence[tuple[str, dict[str, str]]]) -> list[Entry]:
    return [Entry(id_, fields["event"]) for id_, fields in found]
