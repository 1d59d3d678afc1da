"""Server-sent events: cutting a byte stream into events, and making some.

Source of the format: WHATWG HTML, "Server-sent events".
"""

import re

import orjson

from memloop.wire.errors import MemloopError
from memloop_service.api_style import api_style

DONE = b"data: [DONE]\n\n"
HEARTBEAT = b": keep-alive\n\n"
_END_OF_EVENT = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_USUAL_END = b"\n\n"
_LONGEST_END = 4


class EventCutter:
    """Cuts bytes into whole events; the rest of an unfinished event waits for the next bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def whole(self, data: bytes) -> bytes:
        """Return the events that these bytes complete, in one piece; bytes that end an event are not searched."""
        if not self._rest and data.endswith(_USUAL_END):
            return data
        return b"".join(self.feed(data))

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that these bytes complete, each with its closing blank line."""
        if not self._rest and b"\r" not in data:
            *whole, self._rest = data.split(_USUAL_END)
            return [event + _USUAL_END for event in whole]
        seen = max(0, len(self._rest) - _LONGEST_END + 1)
        buffer = self._rest + data
        events: list[bytes] = []
        start = 0
        for end in _END_OF_EVENT.finditer(buffer, seen):
            events.append(buffer[start : end.end()])
            start = end.end()
        self._rest = buffer[start:]
        return events


def data_of(event: bytes) -> bytes:
    """Return the event's data, several ``data:`` lines joined by a newline; empty for a comment."""
    lines = (line for line in event.splitlines() if line.startswith(b"data:"))
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines)


def data_event(json: bytes) -> bytes:
    """Return a ``data:`` event with that JSON."""
    return b"data: " + json + b"\n\n"


def error_event(error: MemloopError) -> bytes:
    """Return an ``error`` event in the style of the request's API: how a stream that has begun reports a failure."""
    return b"event: error\n" + data_event(orjson.dumps(api_style.get().error_body(error)))
