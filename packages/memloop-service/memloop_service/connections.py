"""Bounds what a client may send before its request is known, and how many connections a process has.

uvicorn hands a request to the app once its head is whole; every limit of the app begins there. Until then a stranger
could send a head without an end, or thousands of requests whose answers it never reads.
"""

import asyncio
import http
import logging
import resource
import time
from dataclasses import dataclass
from typing import Any, Final

import orjson
from prometheus_client import CollectorRegistry, Counter
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from memloop_service.settings import ServiceSettings

MOST_HEAD_BYTES: Final = 64 * 1024
"""The most of a request's line and headers together, and of what a body has beside its data (trailers, chunk sizes)."""
MOST_HEADERS: Final = 100
MOST_URL_BYTES: Final = 63 * 1024
_PIECE_BYTES: Final = 2048
"""The parser gets so much at once: more requests than fit in are not in hand while one is being answered."""
_MOST_WAITING_BYTES: Final = 1024 * 1024
"""The most that a client may send after a request that is not answered yet; reading pauses long before that."""
_LINGER_S: Final = 30.0
"""A client may go on sending a body that has been answered, and reads the answer only then."""
_LOG_EVERY_S: Final = 10.0
_SAFE: Final = b"cache-control: no-store\r\nx-content-type-options: nosniff\r\n"

log = logging.getLogger(__name__)


class Refusals:
    """Counts the connections that a process refuses or ends, by reason, and logs each reason every ten seconds."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._refused = Counter(
            "http_connections_refused",
            "Connections refused or closed, by reason: too_many, head_too_large, too_many_headers, url_too_long, "
            "slow_head, pipelined.",
            ("reason",),
            registry=registry,
        )
        self._quiet_until: dict[str, float] = {}
        self._unlogged: dict[str, int] = {}

    def add(self, reason: str, sentence: str) -> None:
        self._refused.labels(reason).inc()
        self._unlogged[reason] = self._unlogged.get(reason, 0) + 1
        if (now := time.monotonic()) >= self._quiet_until.get(reason, 0.0):
            self._quiet_until[reason] = now + _LOG_EVERY_S
            log.warning("connections refused: %d (%s): %s", self._unlogged.pop(reason), reason, sentence)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The most connections at once, and the seconds in which a request's head must arrive."""

    most: int
    head_s: float

    @classmethod
    def of(cls, settings: ServiceSettings, *, share: int = 1) -> "ConnectionLimits":
        """Return the settings' limits; half of the process's file descriptors are left for other uses.

        ``share`` divides the connections, for a port that few clients use.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        files = hard if hard != resource.RLIM_INFINITY else settings.max_connections * 2
        return cls(max(1, min(settings.max_connections, files // 2) // share), settings.head_timeout_s)


@dataclass(frozen=True, slots=True)
class _Refusal:
    status: int
    reason: str
    message: str


_TOO_LARGE: Final = _Refusal(431, "head_too_large", f"The request's line and headers may have {MOST_HEAD_BYTES} bytes.")
_TOO_MANY: Final = _Refusal(431, "too_many_headers", f"A request may have {MOST_HEADERS} headers.")
_LONG_URL: Final = _Refusal(414, "url_too_long", f"The URL may have {MOST_URL_BYTES} bytes.")
_TWO_HOSTS: Final = _Refusal(400, "repeated_header", "The header Host may come only once.")
_SLOW: Final = _Refusal(408, "slow_head", "The request's head did not arrive in time.")
_FULL: Final = _Refusal(503, "too_many", "This process has as many connections as it may have. Try again soon.")
_PIPELINED: Final = _Refusal(400, "pipelined", "Read the answers before you send more requests.")
_MALFORMED: Final = _Refusal(400, "malformed", "Invalid HTTP request received.")


class LimitedHttp(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 with these limits. The callbacks are those that httptools documents for its parser."""

    def __init__(self, limits: ConnectionLimits, refusals: Refusals, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits
        self._refusals = refusals
        self._refusal: _Refusal | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting = b""
        """What came after a request that waits for the answer of the one before it."""
        self._silent_bytes = 0
        """The bytes since the parser last found anything in them."""
        self._head_bytes = self._hosts = 0
        self._head_begun = self._in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._limits.most:
            self._refuse(_FULL)
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        self._waiting = b""
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client sent: at once, or when the request before it has been answered."""
        if self._waiting:
            self._waiting += data
            if len(self._waiting) > _MOST_WAITING_BYTES:
                self._refuse(_PIPELINED)
            else:
                self.flow.pause_reading()
            return
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        for at in range(0, len(data), _PIECE_BYTES):
            if self.pipeline:
                self._waiting = data[at:]
                self.flow.pause_reading()
                return
            piece = data[at : at + _PIECE_BYTES]
            self._silent_bytes += len(piece)
            super().data_received(piece)
            if self._silent_bytes > MOST_HEAD_BYTES:
                self._refuse(_TOO_LARGE)
            if self.transport.is_closing():
                return
        if self._timer is None and (not self.cycle or self.cycle.response_complete):
            self._watch()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_begun = True
        self._head_bytes = self._hosts = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MOST_URL_BYTES:
            raise self._because(_LONG_URL)
        self._take(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer of the body."""
        self._take(len(name) + len(value) + 4)
        super().on_header(name, value)
        if len(self.headers) > MOST_HEADERS:
            raise self._because(_TOO_MANY)
        if self.headers[-1][0] == b"host":
            self._hosts += 1
            if self._hosts > 1:
                raise self._because(_TWO_HOSTS)

    def on_headers_complete(self) -> None:
        """End the head: the request goes to the app."""
        self._unwatch()
        self._head_begun, self._in_body, self._silent_bytes = False, True, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._silent_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body, self._silent_bytes = False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """End an answer, and go on with what came after the next request."""
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if self._waiting:
            if self.pipeline:
                self.flow.pause_reading()
            else:
                data, self._waiting = self._waiting, b""
                self._feed(data)
        elif self._head_begun and self._timer is None:
            self._watch()

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser could not read, or what a callback refused."""
        del msg
        self._refuse(self._refusal or _MALFORMED)

    def _take(self, size: int) -> None:
        self._silent_bytes = 0
        self._head_bytes += size
        if self._head_bytes > MOST_HEAD_BYTES:
            raise self._because(_TOO_LARGE)

    def _because(self, refusal: _Refusal) -> ValueError:
        """Keep the refusal: the parser raises an error of its own in place of the callback's."""
        self._refusal = refusal
        return ValueError(refusal.reason)

    def _refuse(self, refusal: _Refusal) -> None:
        """Answer unless an answer has begun, and close the connection."""
        if self.transport.is_closing():
            return
        self._refusals.add(refusal.reason, refusal.message)
        if not self.cycle or self.cycle.response_complete or not self.cycle.response_started:
            said = {"message": refusal.message, "type": "invalid_request_error", "param": None, "code": refusal.reason}
            body = orjson.dumps({"error": said})
            lines = (
                f"HTTP/1.1 {refusal.status} {http.HTTPStatus(refusal.status).phrase}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
            )
            again = b"retry-after: 1\r\n" if refusal is _FULL else b""
            self.transport.write(lines.encode() + again + _SAFE + b"\r\n" + body)
        self._waiting = b""
        self._unwatch()
        self.transport.close()

    def _watch(self) -> None:
        """Expect a head in time, or the end of a body that has been answered."""
        self._timer = self.loop.call_later(_LINGER_S if self._in_body else self._limits.head_s, self._late)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self._head_begun:
            self._refuse(_SLOW)
        elif not self.transport.is_closing():
            self._refusals.add(_SLOW.reason, "A connection sent nothing in time.")
            self.transport.close()
