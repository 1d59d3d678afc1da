"""Reads server-sent events from a byte stream. Source: WHATWG HTML, "Server-sent events"."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

_END_OF_EVENT = re.compile(rb"\r\n\r\n|\n\n|\r\r")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event; its type is ``message`` when the server named none."""

    type: str
    data: bytes


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[ServerEvent]:
    """The events that carry data, comments left out; an unfinished last one is dropped, as the standard says."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = _END_OF_EVENT.split(rest + chunk)
        for block in whole:
            event = _event(block)
            if event.data:
                yield event


def _event(block: bytes) -> ServerEvent:
    kind, data = b"message", list[bytes]()
    for line in block.splitlines():
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value
    return ServerEvent(kind.decode("utf-8", "replace"), b"\n".join(data))
