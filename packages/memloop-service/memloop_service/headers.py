"""Refuses a request by its headers: repeated ones, another machine's or page's, and a wrong key.

Headers that name the caller or whose data it asks for come at most once. ``If-Match`` names the version of a memory
that a request edits.

A process without keys answers only this machine's own programs, and no page that a browser has open. A page may send
requests to the loopback interface too. Its browser names the page's site in ``Origin``, and in ``Host`` the name that
led here, which may be the page's own (DNS rebinding). A page can send a body without asking first only as a form or as
plain text (Fetch, "CORS-safelisted request-header"), so a JSON route takes nothing but JSON. A port that other machines
reach has other names, so its Host is not checked: such a port without keys serves health and metrics, which no page can
read from there.
"""

import ipaddress
import re
import secrets
from collections.abc import Collection
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from memloop.wire.errors import Forbidden, InvalidRequest, Unauthenticated
from memloop_service.errors import RouteError, error_response

IF_MATCH: Final = r'^(\*|(W/)?"?[0-9]{1,18}"?)$'
"""A version: ``3``, ``"3"`` or ``W/"3"``; ``*`` matches any."""


def version_in(if_match: str) -> int | None:
    """Return the version, or None for any. Raises InvalidRequest for a header of another form."""
    if not re.match(IF_MATCH, if_match):
        raise InvalidRequest("If-Match takes a version number", param="If-Match")
    return None if if_match == "*" else int(if_match.removeprefix("W/").strip('"'))


USER_HEADER: Final = "x-memory-user-id"
AGENT_HEADER: Final = "x-memory-agent-id"
TASK_HEADERS: Final = ("x-memory-task", "x-openwebui-task")
"""Name a front end's own task, such as a title: a chat without memory."""
_SINGLE: Final = (
    "host",
    "authorization",
    "x-api-key",
    "x-memloop-tenant",
    USER_HEADER,
    AGENT_HEADER,
    "idempotency-key",
)
"""No list of several values (RFC 9110, section 5.3)."""


def refuse_repeated(headers: Headers) -> None:
    """Raise InvalidRequest when one of these headers comes twice."""
    if len(set(headers)) == len(headers):
        return
    for name in _SINGLE:
        if len(headers.getlist(name)) > 1:
            raise InvalidRequest(f"The header {name} may come only once.", param=name, code="repeated_header")


_JSON: Final = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)


class LocalOnly:
    """Refuses requests that are not from this machine: 403, and 415 for a body that should be JSON and is not.

    ``listens_at`` is the address that the port is bound to; ``other_bodies`` are the paths whose bodies are not JSON,
    ``other_origins`` those of pages that an operator lets in.
    """

    def __init__(
        self, app: ASGIApp, *, listens_at: str, other_bodies: Collection[str] = (), other_origins: Collection[str] = ()
    ) -> None:
        self._app = app
        self._any_host = not is_loopback(listens_at)
        self._other_bodies, self._other_origins = frozenset(other_bodies), frozenset(other_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, refusal = Headers(scope=scope), None
        if not (self._any_host or _is_here(f"//{headers.get('host', '')}")):
            refusal = Forbidden("Without API keys, the Host header must name a loopback address.", code="foreign_host")
        elif not all(_is_here(origin) or origin in self._other_origins for origin in headers.getlist("origin")):
            refusal = Forbidden("Without API keys, pages of other sites are refused.", code="foreign_origin")
        elif (
            scope["path"] not in self._other_bodies
            and (headers.get("content-length", "0") != "0" or "transfer-encoding" in headers)
            and _JSON.fullmatch(headers.get("content-type", "")) is None
        ):
            refusal = RouteError(415, "The body must be JSON: send 'Content-Type: application/json'.", {})
        await (self._app if refusal is None else error_response(refusal))(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Return whether the host's name or address is this machine's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _is_here(url: str) -> bool:
    """Whether the URL's host is the loopback interface, at any port."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        plain = parts.username is None and not parts.path and parts.port != 0  # a port that is none raises
        return plain and is_loopback(host)
    except ValueError:
        return False


async def refuse_wrong_key(request: Request) -> None:
    """Compare the bearer key with ``key`` in the application's state, in constant time; None lets every request pass.

    A dependency. Raises Unauthenticated.
    """
    key: str | None = request.app.state.key
    if key is None:
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    fits = secrets.compare_digest(given.strip().encode(), key.encode())
    if scheme.lower() != "bearer" or not fits:
        raise Unauthenticated("the store's key is missing or wrong")
