"""Reads server-sent events: bytes in pieces of any size in, whole events out.

Source: WHATWG HTML Living Standard, "Server-sent events", the parts on parsing and on interpreting an event stream.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass
from typing import Final

from memloop.wire.errors import DependencyError

MAX_EVENT_BYTES: Final = 64 * 1024 * 1024
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BLANK_LINE: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_USUAL_END: Final = b"\n\n"
_OVERLAP_BYTES: Final = 3
"""So much of a blank line's end may have come before."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_MESSAGE: Final = "message"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event.

    ``type`` is ``message`` unless the server named one. ``data`` holds the ``data`` lines joined by newlines. ``id`` is
    the last id that the stream set up to here, ``""`` before the first.
    """

    type: str
    data: str
    id: str = ""


class EventTooLarge(DependencyError):
    """The stream holds an event, or a line, over the parser's limit."""


class EventCutter:
    """Cuts one stream into whole events; the beginning of an unfinished event waits for the next bytes."""

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._tail = b""

    def whole(self, data: bytes) -> bytes:
        """Return the events that these bytes complete, in one piece; bytes that end an event are not searched."""
        if not self._held and data.endswith(_USUAL_END):
            return data
        return b"".join(self.feed(data))

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that these bytes complete, each with its closing blank line. Raises EventTooLarge.

        An event ends with the carriage return of its blank line. A line feed after that comes before the next event.
        """
        if not self._held and b"\r" not in data:
            *found, rest = data.split(_USUAL_END)
            events = [event + _USUAL_END for event in found]
        else:
            events, start = list[bytes](), 0
            for end in _BLANK_LINE.finditer(self._tail + data):
                stop = end.end() - len(self._tail)
                events.append(b"".join((*self._held, data[start:stop])))
                self._held, start = [], stop
            rest = data[start:]
        if events:
            self._held, self._held_bytes, self._tail = [], 0, b""
        if rest:
            self._held.append(rest)
            self._held_bytes += len(rest)
            self._tail = (self._tail + rest)[-_OVERLAP_BYTES:]
        if max(self._held_bytes, *map(len, events), 0) > self._max_event_bytes:
            raise EventTooLarge(f"an event of the stream is over {self._max_event_bytes:,} bytes")
        return events


class EventParser:
    """Parses the events of one stream.

    A comment and a block without a ``data`` line make no event. The standard discards an event that its stream does not
    end with a blank line, and so does this parser: there is nothing to flush at the end.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._cutter = EventCutter(max_event_bytes=max_event_bytes)
        self._mark = _BYTE_ORDER_MARK
        self._id = ""

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """Return the events that these bytes complete. Raises EventTooLarge."""
        found: list[ServerEvent] = []
        for event in self._cutter.feed(piece):
            kind, data = "", list[str]()
            for line in _LINE_END.split(event.removeprefix(self._mark)):
                name, _, raw = line.partition(b":")
                value = raw.removeprefix(b" ").decode("utf-8", "replace")
                if name == b"data":
                    data.append(value)
                elif name == b"event":
                    kind = value
                elif name == b"id" and "\0" not in value:
                    self._id = value
            self._mark = b""
            if data:
                found.append(ServerEvent(kind or _MESSAGE, "\n".join(data), self._id))
        return found


def data_of(event: bytes) -> bytes:
    """Return the event's data, several ``data:`` lines joined by a newline; empty for a comment."""
    return b"\n".join([line[5:].removeprefix(b" ") for line in event.splitlines() if line.startswith(b"data:")])


async def parse_events(
    pieces: AsyncIterable[bytes], *, max_event_bytes: int = MAX_EVENT_BYTES
) -> AsyncGenerator[ServerEvent]:
    """Yield the events of a stream as they complete. Raises EventTooLarge, and whatever ``pieces`` raises."""
    parser = EventParser(max_event_bytes=max_event_bytes)
    async for piece in pieces:
        for event in parser.feed(piece):
            yield event
