"""Times every request by its route: the innermost plain-ASGI layer, because only the router resolves the route."""

import time
from functools import lru_cache
from typing import cast

from prometheus_client import Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_UNMATCHED = "unmatched"


class RequestTimes:
    """Observes a request's duration up to its last byte, with the route's template and the status."""

    def __init__(self, app: ASGIApp, *, seconds: Histogram) -> None:
        self._app = app
        self._labels = lru_cache(maxsize=1024)(seconds.labels)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        code = 500

        async def noting(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = cast(int, message["status"])
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            self._labels(cast(str, getattr(scope.get("route"), "path", _UNMATCHED)), code).observe(
                time.perf_counter() - started
            )
