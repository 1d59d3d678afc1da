"""How the client of the gateway calls it: addresses, streams, errors as the gateway raised them."""

import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from hashlib import sha256
from typing import Final, cast

import orjson
from pydantic import BaseModel
from yarl import URL

from memloop.sse import ServerEvent, parse_events
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError, Forbidden, MemloopError, NotSupported, Unauthenticated
from memloop_clients.http import Http, HttpClient, as_raised, own_error
from memloop_clients.transport import Timeouts

_TIMEOUTS: Final = Timeouts()
_ALSO: Final = {401: Unauthenticated, 403: Forbidden, 500: MemloopError, 501: NotSupported}


class GatewayCalls(HttpClient):
    """The calls that the methods of a client are made of."""

    def __init__(
        self, url: str, *, api_key: str | None = None, timeouts: Timeouts = _TIMEOUTS, tls: ssl.SSLContext | None = None
    ) -> None:
        """``url`` may end in ``/v1``. Raises ValueError when it is not an http URL.

        ``tls`` is for an ``https`` URL; None trusts the system's authorities.
        """
        self.url = root_url(url)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        peer = f"gateway {self.url}"
        error_of = as_raised("gateway", also=_ALSO)
        http = Http(f"{self.url}/v1", peer=peer, error_of=error_of, headers=headers, timeouts=timeouts, tls=tls)
        super().__init__(http)

    async def _stream(
        self, method: str, path: str, *, body: Json | None = None, params: Mapping[str, str] | None = None
    ) -> AsyncGenerator[ServerEvent]:
        raw = None if body is None else orjson.dumps(body)
        async with self._http.open(method, path, body=raw, params=params) as response:
            await response.check()
            async with aclosing(parse_events(response.chunks())) as events:
                async for event in events:
                    if event.type == "error" or event.data.startswith('{"error"'):
                        fault = own_error(event.data)
                        raise DependencyError(fault.message if fault else "the gateway ended its stream early")
                    yield event


def root_url(url: str) -> str:
    """Return the URL above ``/v1``, given with or without it. Raises ValueError unless it is an http URL."""
    parsed = URL(url)
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise ValueError(f"{url!r} is not an http URL")
    return url.rstrip("/").removesuffix("/v1")


def once(name: str | None) -> dict[str, str]:
    """Return the header that makes a write idempotent by its name."""
    return {"Idempotency-Key": sha256(name.encode()).hexdigest()} if name else {}


def body_of(model: BaseModel) -> Json:
    return cast(Json, model.model_dump(mode="json", exclude_none=True))
