"""A process without keys answers only this machine's own programs, and no page that a browser has open.

A page may send requests to the loopback interface too. Its browser names the page's site in ``Origin``, and in ``Host``
the name that led here, which may be the page's own (DNS rebinding). A page can send a body without asking first only as
a form or as plain text (Fetch, "CORS-safelisted request-header"), so a JSON route takes nothing but JSON.

A port that other machines reach has other names, so its Host is not checked: such a port without keys serves health
and metrics, which no page can read from there.
"""

import ipaddress
import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from memloop.wire.errors import Forbidden, MemloopError
from memloop_service.errors import RouteError, error_response

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
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await error_response(refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> MemloopError | None:
        headers = Headers(scope=scope)
        if not (self._any_host or _is_here(f"//{headers.get('host', '')}")):
            return Forbidden("Without API keys, the Host header must name a loopback address.", code="foreign_host")
        if not all(_is_here(origin) or origin in self._other_origins for origin in headers.getlist("origin")):
            return Forbidden("Without API keys, pages of other sites are refused.", code="foreign_origin")
        if (
            scope["path"] not in self._other_bodies
            and (headers.get("content-length", "0") != "0" or "transfer-encoding" in headers)
            and not (_JSON.fullmatch(headers.get("content-type", "")) is not None)
        ):
            return RouteError(415, "The body must be JSON: send 'Content-Type: application/json'.", {})
        return None


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
