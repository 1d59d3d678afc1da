"""The outermost layer of an app, as plain ASGI: request ID, times, body, trailing slashes, unhandled errors.

A body is limited, counted, in time, and unpacked as it comes in.
"""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, cast

from prometheus_client import Histogram
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memloop.chores import patient_until
from memloop.wire.base import CALLERS_ID, request_id
from memloop.wire.errors import MemloopError, SlowBody, TooLarge
from memloop_service.errors import OPENAI, ApiStyle, api_style, as_error, error_response
from memloop_service.incoming import refuse_lost_characters, refuse_repeated
from memloop_service.serving import Drain
from memloop_service.unpacking import Unpacking, unpacking_of

INCOMING: Final = "memloop.incoming"
"""Where a request's scope holds its body."""
_NOTHING: Final[Message] = {"type": "http.request"}


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """A client may take ``timeout_s`` to send a body of up to ``max_bytes``, and a second more per ``bytes_per_s``."""

    max_bytes: int
    timeout_s: float
    bytes_per_s: int


class IncomingBody:
    """Receives a body. Whoever sets ``count`` gets the size of each piece, and may raise an error to refuse it.

    ``unpacking`` is that of a packed body; the limit is on its size before and after, and ``count`` gets the latter.
    """

    def __init__(self, receive: Receive, limits: BodyLimits) -> None:
        self.is_whole = False
        self.count: Callable[[int], None] | None = None
        self.unpacking: Unpacking | None = None
        self._receive = receive
        self._limits = limits
        self._received = self._size = 0
        self._is_all_here = False
        self._waited_s = 0.0

    def check(self, size: int) -> None:
        """Raise TooLarge for a body of that size."""
        if size > self._limits.max_bytes:
            raise TooLarge(f"the body is over the limit of {self._limits.max_bytes} bytes")

    async def next(self) -> Message:
        """Return the next piece, or the client's leaving.

        Raises TooLarge, SlowBody, InvalidRequest for a body that cannot be unpacked, and what ``count`` raises.
        """
        unpacking = self.unpacking
        if unpacking is None or not unpacking.has_more:
            message = await self._sent()
        else:
            await asyncio.sleep(0)  # a small body may unpack to a large one: others have their turn
            message = _NOTHING
        if unpacking is not None and message["type"] == "http.request":
            message = {**message, "body": unpacking.piece(message.get("body", b""))}
            message["more_body"] = unpacking.has_more or not self._is_all_here
            if not message["more_body"]:
                unpacking.end()
        size = len(message.get("body", b""))
        self._size += size
        self.is_whole = not message.get("more_body", False)
        self.check(self._size)
        if size and self.count is not None:
            self.count(size)
        return message

    async def _sent(self) -> Message:
        """Return the client's next message. Only waiting for it counts, not what is done with the body in between."""
        limits, loop = self._limits, asyncio.get_running_loop()
        began = loop.time()
        left_s = limits.timeout_s + self._received / limits.bytes_per_s - self._waited_s
        try:
            async with patient_until(began + left_s):
                message = await self._receive()
        except TimeoutError:
            late = f"{self._received} bytes of the body came in {limits.timeout_s + self._waited_s:.0f} s."
            raise SlowBody(late) from None
        finally:
            self._waited_s += loop.time() - began
        self._received += len(message.get("body", b""))
        self._is_all_here = not message.get("more_body", False)
        self.check(self._received)
        return message


TRAILING_SLASH: Final = "memloop.trailing_slash"
"""The scope's key that is set if the request's path had a trailing slash."""
RESPONSE_HEADERS: Final = "response_headers"
"""The key in a request's state that holds headers to add to its response, also to an error."""
_UNMATCHED: Final = "unmatched"
_CALLERS_ID: Final = CALLERS_ID.encode()
_CLIENT_ID_CHARS = 512
_OUR_ID = re.compile(r"req_[0-9a-f]{32}")

log = logging.getLogger(__name__)


class Edge:
    """Wraps an app. Routes are declared without a trailing slash and also match with one.

    ``larger_bodies`` are the limits of paths that need more, ``styles`` the styles of paths of two
    segments that do not have OpenAI's, and of all paths below them.
    ``adopts_ids``: the caller is one of our processes, and its request ID is kept.
    ``seconds`` gets each request's time to its last byte, with the route's template and the status.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        drain: Drain,
        limits: BodyLimits,
        larger_bodies: Mapping[str, int] | None = None,
        styles: Mapping[str, ApiStyle] | None = None,
        adopts_ids: bool = False,
        seconds: Histogram | None = None,
    ) -> None:
        self._app = app
        self._times = None if seconds is None else lru_cache(maxsize=1024)(seconds.labels)
        self._styles = styles or {}
        self._drain = drain
        self._limits = limits
        self._larger_bodies = {
            path: replace(limits, max_bytes=max_bytes) for path, max_bytes in (larger_bodies or {}).items()
        }
        self._adopts_ids = adopts_ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, path = Headers(scope=scope), scope["path"].rstrip("/")
        style = self._styles.get("/".join(path.split("/", 3)[:3]), OPENAI)
        body = scope[INCOMING] = IncomingBody(receive, self._larger_bodies.get(path, self._limits))
        inner = _without_slash(scope)
        kept = cast("dict[str, Mapping[str, str]]", inner.setdefault("state", {}))
        exchange = _Exchange(headers, receive, send, self._drain, body, style, kept, adopts_id=self._adopts_ids)
        api_style.set(style)
        request_id.set(exchange.id)
        try:
            _refuse_head(scope, headers, body)
            await self._app(inner, exchange.receive, exchange.send)
        except Exception as failure:
            if exchange.started:
                raise
            await _response_to(failure, scope)(scope, receive, exchange.send)
        finally:
            if exchange.started and not exchange.closing:
                self._drain.untold -= 1
                self._drain.last_untold_at = time.monotonic()
            if self._times is not None:
                route = cast(str, getattr(inner.get("route"), "path", _UNMATCHED))
                self._times(route, exchange.status).observe(time.perf_counter() - exchange.began)
            del scope[INCOMING]  # it refers to the server's request, which refers to the scope


class _Exchange:
    """One request and its response."""

    def __init__(
        self,
        headers: Headers,
        receive: Receive,
        send: Send,
        drain: Drain,
        body: IncomingBody,
        style: ApiStyle,
        kept: Mapping[str, Mapping[str, str]],
        *,
        adopts_id: bool,
    ) -> None:
        self.started = self.closing = False
        self.status = 500
        self.began = time.perf_counter()
        self._receive, self._send, self._drain, self._body, self._style = receive, send, drain, body, style
        self._kept = kept
        given = headers.get(CALLERS_ID, "")
        self._client_id = given if given.isascii() and given.isprintable() and len(given) <= _CLIENT_ID_CHARS else ""
        known = adopts_id and _OUR_ID.fullmatch(self._client_id)
        self.id = self._client_id if known else f"req_{secrets.token_hex(16)}"

    def receive(self) -> Awaitable[Message]:
        """Return the app's next message. Raises as ``IncomingBody.next`` does.

        Once the body is whole or the response has begun, a receive waits for the client to leave, without a limit.
        """
        return self._receive() if self._body.is_whole or self.started else self._body.next()

    def send(self, message: Message) -> Awaitable[None]:
        """Forward the app's response with the headers added to its start that no other part of a process sets."""
        if message["type"] == "http.response.start":
            self.started = True
            # the rest of a slow body is not awaited
            self.status = message["status"]
            self.closing = self._drain.began_at is not None or self.status == SlowBody.status
            if not self.closing:
                self._drain.untold += 1
            took_ms = round((time.perf_counter() - self.began) * 1000)
            headers = message["headers"] = [
                *message["headers"],
                *((name.encode(), value.encode()) for name, value in self._kept.get(RESPONSE_HEADERS, {}).items()),
                *((name.encode(), self.id.encode()) for name in self._style.id_headers),
                (b"openai-processing-ms", b"%d" % took_ms),
                (b"x-content-type-options", b"nosniff"),
            ]
            if self._client_id:
                headers.append((_CALLERS_ID, self._client_id.encode()))
            if self.closing:
                headers.append((b"connection", b"close"))
            if all(name != b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store"))
        return self._send(message)


def _response_to(failure: Exception, scope: Scope) -> ASGIApp:
    """Return the response to an unhandled exception. No frame of its traceback may hold it: both would stay."""
    error = as_error(failure, Request(scope))
    if type(error) is MemloopError:
        log.error("unhandled exception", exc_info=failure)
    return error_response(error)


def _refuse_head(scope: Scope, headers: Headers, body: IncomingBody) -> None:
    """Raise InvalidRequest for a repeated header, Unprocessable for a damaged address, TooLarge.

    Raises RouteError (415) for a body that is packed in an unknown way.
    """
    refuse_repeated(headers)
    if "content-encoding" in headers:
        body.unpacking = unpacking_of(", ".join(headers.getlist("content-encoding")))
    announced = headers.get("content-length", "")
    if announced.isdecimal():
        body.check(int(announced))
    address: bytes = (scope.get("raw_path") or b"") + scope["query_string"]
    if b"%" in address or not address.isascii():
        refuse_lost_characters(scope)


def _without_slash(scope: Scope) -> Scope:
    path = scope["path"]
    if path == "/" or not path.endswith("/"):
        return scope
    raw: bytes = scope.get("raw_path") or path.encode()
    bare = raw.rstrip(b"/")
    slashes = len(raw) - len(bare)  # an encoded one, %2F, is a part of a name
    if not slashes:
        return scope
    return {**scope, "path": path[:-slashes] or "/", "raw_path": bare or b"/", TRAILING_SLASH: True}
