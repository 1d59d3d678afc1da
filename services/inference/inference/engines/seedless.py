"""Takes the seed out of requests to vLLM on CPUs: an ASGI middleware for its server (``--middleware``).

vLLM 0.32 may compute a prompt in several steps, and after each but the last sets the generator of a seeded request back
by its offset. A CPU's generator has none (``RuntimeError: CPU Generator does not use offset``), and the engine ends for
every client.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias, cast

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]
_FIELD: Final = "seed"


class Seedless:
    """Passes requests on, those that hold a seed without it."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        messages = [await receive()]
        while messages[-1].get("more_body"):
            messages.append(await receive())
        whole = b"".join(message.get("body", b"") for message in messages)
        if messages[-1]["type"] == "http.request" and (body := _without_seed(whole)) is not None:
            messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Message:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, replayed, send)


def _without_seed(body: bytes) -> bytes | None:
    """Return a JSON object's text without the seed; None where there is none to take out."""
    try:
        fields: object = json.loads(body)  # as the server reads it: in any of JSON's encodings, keys with escapes
    except (ValueError, RecursionError):  # the server's own answer says what is wrong
        return None
    if not isinstance(fields, dict) or _FIELD not in fields:
        return None
    given = cast("dict[str, object]", fields)
    return json.dumps({name: value for name, value in given.items() if name != _FIELD}).encode()
