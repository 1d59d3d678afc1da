"""Holds one connection to a peer, with one request at a time.

One lazy timer watches the waiting time of the reader; arriving bytes do not touch it. Of a body without a reader at
most ``_MOST_WAITING_BYTES`` are read; then the peer has to wait.
"""

import asyncio
import math
from typing import Final, cast

from memloop.wire.errors import Timeout, Unavailable
from memloop_clients.http1.answer import Answer, AnswerError

_MOST_WAITING_BYTES: Final = 64 * 1024
_RETRY_AFTER_S: Final = 1.0
_TAKES_NO_WORK: Final = 503
"""A server that starts, drains or is full: the next connection may lead to another one."""
_CLOCK_S: Final = 0.001
"""The step of uvloop's clock: a timer may come so much too early, and for less time than that it does not wait."""


class Connection(asyncio.Protocol):
    """An open connection. Raises Unavailable when it is lost, Timeout when the peer is silent for ``read_s``."""

    def __init__(self, peer: str, *, read_s: float) -> None:
        self._peer = peer
        self._read_s = read_s
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._waiting_since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._paused = False
        self._failure: Unavailable | Timeout | None = None
        self.idle_since = 0.0
        """On the loop's clock; for who keeps it."""
        self.retires_at = math.inf
        """On the loop's clock: from then on it gets no further request."""

    @property
    def usable(self) -> bool:
        """Return whether another request may be sent on it."""
        open_ = self._transport is not None and not self._transport.is_closing()
        return open_ and self._failure is None and not self._paused

    @property
    def transport(self) -> asyncio.Transport:
        """Return the transport to send on. Raises Unavailable when the connection is closed."""
        if self._transport is None:
            raise self._lost()
        return self._transport

    async def ask(self, head: bytes, body: bytes) -> Answer:
        """Send a request and wait for the answer's status and headers. A caller that is cancelled must ``abort``."""
        transport = self.transport
        self._answer = answer = Answer()
        transport.writelines((head, body) if body else (head,))
        while not answer.begun:
            await self._more()
        return answer

    async def some(self, answer: Answer) -> bytes:
        """Return the bytes of the answer's body that have arrived; none at its end."""
        while not answer.parts:
            if answer.complete:
                return b""
            await self._more()
        return self._taken_from(answer) if self._paused else answer.take()

    def finished(self, answer: Answer) -> bool:
        """End the exchange. Returns whether the connection may be kept; if not, it is closed, and the peer stops."""
        self._answer = None
        answer.end()
        takes_work = answer.status != _TAKES_NO_WORK
        if self.usable and takes_work and answer.keeps_alive and not self._unsent_bytes():
            return True
        self.abort()
        return False

    def abort(self) -> None:
        """Close the connection immediately."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio's protocols."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        """See asyncio's protocols."""
        answer = self._answer
        if answer is None:  # nothing was asked
            self.abort()
            return
        try:
            answer.feed(data)
        except AnswerError as error:
            self._fail(error)
        self._wake()
        if answer.size > _MOST_WAITING_BYTES and answer.parts and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio's protocols."""
        if self._timer is not None:
            self._timer.cancel()
        if self._answer is not None and exc is None and self._answer.ends_with_the_connection():
            self._answer.complete = True
        self._fail(exc)

    def _taken_from(self, answer: Answer) -> bytes:
        data = answer.take()
        if self._transport is not None and answer.size <= _MOST_WAITING_BYTES:
            self._paused = False
            self._transport.resume_reading()
        return data

    def _more(self) -> asyncio.Future[None]:
        """Return what is done once there is more of the answer. Raises the error that ended the connection."""
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        self._waiting_since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._read_s, self._look)
        return self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self) -> None:
        """Raise Timeout in a reader that has waited too long, unless a long request is still being sent."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return  # the next one who waits sets it again
        if self._is_sending():
            self._waiting_since = self._loop.time()
        left_s = self._waiting_since + self._read_s - self._loop.time()
        if left_s > _CLOCK_S:
            self._timer = self._loop.call_later(left_s, self._look)
            return
        self._failure = Timeout(f"the {self._peer} did not answer in time")
        self._wake()
        self.abort()

    def _is_sending(self) -> bool:
        """Return whether the peer has accepted some, but not all, of the request since the last call."""
        before, self._unsent = self._unsent, self._unsent_bytes()
        return self._unsent not in {0, before}

    def _unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def _fail(self, cause: Exception | None) -> None:
        if self._failure is None:
            self._failure = self._lost()
            self._failure.__cause__ = cause
        self._wake()
        self.abort()

    def _lost(self) -> Unavailable:
        return Unavailable(f"the connection to the {self._peer} was lost", retry_after_s=_RETRY_AFTER_S)
