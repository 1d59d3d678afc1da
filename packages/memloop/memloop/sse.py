"""Parses server-sent events: bytes in pieces of any size in, whole events out.

Source: WHATWG HTML Living Standard, "Server-sent events", the parts on parsing and on interpreting an event stream.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass
from typing import Final

from memloop.wire.errors import DependencyError

MAX_EVENT_BYTES: Final = 64 * 1024 * 1024
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
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


class EventParser:
    """Holds the unfinished part of one stream between two pieces.

    A comment and a block without a ``data`` line make no event. The standard discards an event that its stream does not
    end with a blank line, and so does this parser: there is nothing to flush at the end.
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._at_start = True
        self._after_cr = False
        self._type = ""
        self._data: list[str] = []
        self._data_bytes = 0
        self._id = ""

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """Return the events that these bytes complete. Raises EventTooLarge."""
        if not piece:
            return []
        whole = piece.removeprefix(b"\n") if self._after_cr else piece  # a CRLF whose halves came apart
        self._after_cr = whole.endswith(b"\r")
        first, *others = _LINE_END.split(whole)
        self._hold(first)
        events: list[ServerEvent] = []
        for part in others:
            events += self._interpret(self._taken_line())
            self._hold(part)
        return events

    def _hold(self, part: bytes) -> None:
        self._line.append(part)
        self._line_bytes += len(part)
        if self._line_bytes + self._data_bytes > self._max_event_bytes:
            raise EventTooLarge(f"an event of the stream is over {self._max_event_bytes:,} bytes")

    def _taken_line(self) -> bytes:
        line = b"".join(self._line)
        self._line, self._line_bytes = [], 0
        if self._at_start:
            self._at_start = False
            return line.removeprefix(_BYTE_ORDER_MARK)
        return line

    def _interpret(self, line: bytes) -> list[ServerEvent]:
        if not line:
            return self._dispatched()
        name, _, value = line.partition(b":")
        self._set_field(name, value.removeprefix(b" "))
        return []

    def _set_field(self, name: bytes, raw: bytes) -> None:
        value = raw.decode("utf-8", "replace")
        match name:
            case b"data":
                self._data.append(value)
                self._data_bytes += len(raw) + 1
            case b"event":
                self._type = value
            case b"id" if "\0" not in value:
                self._id = value
            case _:  # a comment has an empty name; the standard ignores all other fields
                pass

    def _dispatched(self) -> list[ServerEvent]:
        """The event that a blank line ends; none without data."""
        event = ServerEvent(self._type or _MESSAGE, "\n".join(self._data), self._id)
        found = [event] if self._data else []
        self._type, self._data, self._data_bytes = "", [], 0
        return found


async def parse_events(
    pieces: AsyncIterable[bytes], *, max_event_bytes: int = MAX_EVENT_BYTES
) -> AsyncGenerator[ServerEvent]:
    """Yield the events of a stream as they complete. Raises EventTooLarge, and whatever ``pieces`` raises."""
    parser = EventParser(max_event_bytes=max_event_bytes)
    async for piece in pieces:
        for event in parser.feed(piece):
            yield event
