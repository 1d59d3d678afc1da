"""Sends what one step of the event loop writes to a connection at once: the head of an answer with its body.

uvicorn writes both by themselves, and each write is a system call that wakes the peer: the dearest part of a small
answer. But what is held costs a turn of the event loop. So a stream whose events come one by one is not held.
"""

import asyncio
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MOST_HELD_BYTES: Final = 64 * 1024
"""More is sent on at once, so that the connection's own buffer can tell its writer to wait."""
_HEAD: Final = b"HTTP/1."
"""How an answer begins."""


class JoinedWrites:
    """A transport that sends its writes together when the event loop comes round. All else is the inner one's.

    After a write that no other has joined, it sends each at once until the next answer begins.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = transport
        self._loop = loop
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._joins = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, data: bytes) -> None:
        """Hold the data until the event loop comes round, or there is much of it; or send it at once."""
        if not (self._held or self._joins or data.startswith(_HEAD)):
            self._inner.write(data)
            return
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes >= _MOST_HELD_BYTES:
            self._send()

    def get_write_buffer_size(self) -> int:
        """Return the bytes that are not sent yet."""
        return self._held_bytes + self._inner.get_write_buffer_size()

    def close(self) -> None:
        """Send what is held, and close."""
        self._send()
        self._inner.close()

    def _send(self) -> None:
        if not self._held:
            return
        held, self._held, self._held_bytes = self._held, [], 0
        self._joins = len(held) > 1
        if not self._inner.is_closing():
            self._inner.write(b"".join(held))


class JoinedHttp(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 on such a transport."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection."""
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport, self.loop)))
