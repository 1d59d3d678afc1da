"""Sends what one step of the event loop writes to a connection at once: the head of an answer with its body.

uvicorn writes both by themselves, and each write is a system call that wakes the peer: the dearest part of a small
answer. But what is held costs a turn of the event loop. So a stream whose events come one by one is not held.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST_HELD_BYTES: Final = 64 * 1024
"""More is sent on at once, so that the connection's own buffer can tell its writer to wait."""


class JoinedWrites:
    """A transport that sends its writes together when the event loop comes round. All else is the inner one's.

    After a write that no other has joined, it sends each at once until ``end_answer``.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._held_bytes = 0
        self.write: Callable[[bytes], None] = self._hold
        """Send the data: when the event loop comes round or there is much of it, or at once."""
        self.get_extra_info = transport.get_extra_info
        self.is_closing = transport.is_closing
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading
        self.set_protocol = transport.set_protocol

    def end_answer(self) -> None:
        """Send what is held, and hold the writes of the next answer."""
        self._send()
        self.write = self._hold

    def get_write_buffer_size(self) -> int:
        """Return the bytes that are not sent yet."""
        return self._held_bytes + self._inner.get_write_buffer_size()

    def close(self) -> None:
        """Send what is held, and close."""
        self._send()
        self._inner.close()

    def _hold(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes >= _MOST_HELD_BYTES:
            self._send()

    def _send(self) -> None:
        if not self._held:
            return
        held, self._held, self._held_bytes = self._held, [], 0
        if len(held) == 1:
            self.write = self._inner.write
        if not self._inner.is_closing():
            self._inner.write(b"".join(held))


class JoinedHttp(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 on such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        self._writes = JoinedWrites(transport, self.loop)
        super().connection_made(cast(asyncio.Transport, self._writes))

    def on_response_complete(self) -> None:
        """End an answer."""
        self._writes.end_answer()
        super().on_response_complete()
