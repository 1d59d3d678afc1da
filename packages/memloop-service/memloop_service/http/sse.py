"""Writes server-sent events.

Source of the format: WHATWG HTML, "Server-sent events".
"""

import orjson

from memloop.wire.errors import MemloopError
from memloop_service.api_style import api_style

DONE = b"data: [DONE]\n\n"
HEARTBEAT = b": keep-alive\n\n"


def data_event(json: bytes, *, kind: str = "", event_id: str = "") -> bytes:
    """Return an event with that JSON, of the type ``kind`` if it has one."""
    named, numbered = f"event: {kind}\n" if kind else "", f"id: {event_id}\n" if event_id else ""
    return b"%bdata: %b\n\n" % ((named + numbered).encode(), json)


def error_event(error: MemloopError) -> bytes:
    """Return an ``error`` event in the style of the request's API: how a stream that has begun reports a failure."""
    return data_event(orjson.dumps(api_style.get().error_body(error)), kind="error")
