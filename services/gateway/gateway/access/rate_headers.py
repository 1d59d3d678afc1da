"""Puts the ``x-ratelimit-…`` headers of a request on its response, a refusal included. Plain ASGI."""

from collections.abc import Mapping
from typing import cast

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.access.allowance import STATE_HEADERS


class RateHeaders:
    """Adds the headers that the route has left in the request's state."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = cast(dict[str, object], scope.setdefault("state", {}))

        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start" and STATE_HEADERS in state:
                MutableHeaders(scope=message).update(cast(Mapping[str, str], state[STATE_HEADERS]))
            await send(message)

        await self._app(scope, receive, telling)
