"""The outermost layer of an app, as plain ASGI: request ID, timing, body limit, trailing slashes, unhandled errors.

Our layers inspect only the start of a response. The body may bypass them all, and does when it is streamed:
``scope[BODY_SEND]`` is the ``send`` for it.
"""

import logging
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memloop.wire.correlation import CALLERS_ID, request_id
from memloop.wire.errors import MemloopError, SlowBody
from memloop_service.addresses import refuse_lost_characters
from memloop_service.api_style import OPENAI, ApiStyle, api_style
from memloop_service.drain import Drain
from memloop_service.errors import as_error, error_response
from memloop_service.headers import refuse_repeated
from memloop_service.incoming import INCOMING, BodyLimits, IncomingBody

BODY_SEND: Final = "memloop.body_send"
"""The scope's key for the direct ``send`` of a response's body, set once its start has passed all layers."""
TRAILING_SLASH: Final = "memloop.trailing_slash"
"""The scope's key that is set if the request's path had a trailing slash."""
_CALLERS_ID: Final = CALLERS_ID.encode()
_CLIENT_ID_CHARS = 512
_NOT_SNIFFED: Final = (b"x-content-type-options", b"nosniff")
_NOT_STORED: Final = (b"cache-control", b"no-store")
_OUR_ID = re.compile(r"req_[0-9a-f]{32}")

log = logging.getLogger(__name__)


class Edge:
    """Wraps an app. Routes are declared without a trailing slash and also match with one.

    ``larger_bodies`` are the limits of paths that need more, ``styles`` the styles of paths of two
    segments that do not have OpenAI's, and of all paths below them.
    ``adopts_ids``: the caller is one of our processes, and its request ID is kept.
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
    ) -> None:
        self._app = app
        self._styles = styles or {}
        self._drain = drain
        self._limits = limits
        self._larger_bodies = {
            path: replace(limits, max_bytes=max_bytes) for path, max_bytes in (larger_bodies or {}).items()
        }
        self._adopts_ids = adopts_ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].rstrip("/")
        body = IncomingBody(receive, self._larger_bodies.get(path, self._limits))
        api_style.set(self._style(path))
        exchange = _Exchange(scope, receive, send, self._drain, body, adopts_id=self._adopts_ids)
        request_id.set(exchange.id)
        scope[BODY_SEND], scope[INCOMING] = send, body
        try:
            exchange.refuse_head()
            await self._app(_without_slash(scope), exchange.receive, exchange.send)
        except Exception as failure:
            if exchange.started:
                raise
            await exchange.fail(failure)
        finally:
            exchange.ended()
            del scope[BODY_SEND], scope[INCOMING]  # both refer to the server's request, which refers to the scope

    def _style(self, path: str) -> ApiStyle:
        """Return the style of a path: that of its API, or OpenAI's."""
        return self._styles.get("/".join(path.split("/", 3)[:3]), OPENAI)


class _Exchange:
    """One request and its response."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, drain: Drain, body: IncomingBody, *, adopts_id: bool
    ) -> None:
        self.started = False
        self._drain = drain
        self._closing = False
        self._scope = scope
        self._receive = receive
        self._send = send
        self._body = body
        self._began = time.perf_counter()
        self._headers = headers = Headers(scope=scope)
        self._announced = headers.get("content-length", "")
        self._client_id = _client_id(headers)
        known = adopts_id and _OUR_ID.fullmatch(self._client_id)
        self.id = self._client_id if known else f"req_{secrets.token_hex(16)}"

    def refuse_head(self) -> None:
        """Raise InvalidRequest for a repeated header, Unprocessable for a damaged address, TooLarge."""
        refuse_repeated(self._headers)
        if self._announced.isdecimal():
            self._body.check(int(self._announced))
        address: bytes = (self._scope.get("raw_path") or b"") + self._scope["query_string"]
        if b"%" in address or not address.isascii():
            refuse_lost_characters(self._scope)

    async def receive(self) -> Message:
        """Return the app's next message. Raises as ``IncomingBody.next`` does.

        Once the body is whole or the response has begun, a receive waits for the client to leave, without a limit.
        """
        if self._body.is_whole or self.started:
            return await self._receive()
        return await self._body.next()

    async def send(self, message: Message) -> None:
        """Forward the app's response with our headers added to its start."""
        if message["type"] == "http.response.start":
            self._begin(message["status"])
            headers = message["headers"]
            message["headers"] = [*headers, *self._own_headers(), _NOT_SNIFFED]
            if all(name != b"cache-control" for name, _ in headers):
                message["headers"].append(_NOT_STORED)
        await self._send(message)

    def _own_headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that no other part of a process sets."""
        took_ms = round((time.perf_counter() - self._began) * 1000)
        own = [(name.encode(), self.id.encode()) for name in api_style.get().id_headers]
        own.append((b"openai-processing-ms", b"%d" % took_ms))
        if self._client_id:
            own.append((_CALLERS_ID, self._client_id.encode()))
        if self._closing:
            own.append((b"connection", b"close"))
        return own

    def _begin(self, status: int) -> None:
        self.started = True
        self._closing = self._drain.begun or status == SlowBody.status  # the rest of that body is not awaited
        if not self._closing:
            self._drain.promised()

    def ended(self) -> None:
        """Record the end of the exchange, successful or not."""
        if self.started and not self._closing:
            self._drain.fulfilled()

    async def fail(self, failure: Exception) -> None:
        """Respond to an unhandled exception."""
        error = as_error(failure, Request(self._scope))
        if type(error) is MemloopError:
            log.error("unhandled exception", exc_info=failure)
        await error_response(error)(self._scope, self._receive, self.send)


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


def _client_id(headers: Headers) -> str:
    given = headers.get(CALLERS_ID, "")
    return given if given.isascii() and given.isprintable() and len(given) <= _CLIENT_ID_CHARS else ""
