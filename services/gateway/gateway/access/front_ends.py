"""Names the user of a request by a chat front end's own header."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from fastapi import Request
from starlette import types

from gateway.access.dependencies import principal_of
from memloop.wire.errors import MemloopError
from memloop_service.incoming import USER_HEADER

_USER: Final = USER_HEADER.encode()


class UserHeaders:
    """Reads the first of ``names`` that a request has as ``X-Memory-User-Id``, where one of the ``keys`` sends it.

    With another key these headers have no meaning: their value is whatever a client wrote. Without configured keys
    every caller is this machine's.
    """

    def __init__(self, app: types.ASGIApp, *, names: Sequence[str], keys: frozenset[str]) -> None:
        self._app = app
        self._names = [name.lower().encode() for name in names]
        self._keys = keys

    async def __call__(self, scope: types.Scope, receive: types.Receive, send: types.Send) -> None:
        """ASGI."""
        if scope["type"] == "http":
            given: list[tuple[bytes, bytes]] = scope["headers"]
            present = {name for name, _ in given}
            named = next((name for name in self._names if name in present), None)
            if named is not None and _USER not in present:
                with suppress(MemloopError):  # which the route refuses
                    key = (await principal_of(Request(scope))).key
                    users = [(_USER, value) for name, value in given if name == named]
                    scope = scope if key and key not in self._keys else {**scope, "headers": [*given, *users]}
        await self._app(scope, receive, send)
