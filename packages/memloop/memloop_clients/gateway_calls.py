"""How the client of the gateway calls it: addresses, streams, errors as the gateway raised them."""

import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from hashlib import sha256
from typing import Final, TypeVar, cast

import orjson
from pydantic import BaseModel, ValidationError
from yarl import URL

from memloop.sse import ServerEvent, parse_events
from memloop.wire.chat import Json
from memloop.wire.errors import (
    Conflict,
    DependencyError,
    Forbidden,
    InvalidRequest,
    MemloopError,
    NotFound,
    NotSupported,
    PreconditionFailed,
    RateLimited,
    Timeout,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unprocessable,
)
from memloop_clients.http import Http, HttpClient, as_raised, own_error
from memloop_clients.transport import Timeouts

_TIMEOUTS: Final = Timeouts()
_ERRORS: Final[Mapping[int, type[MemloopError]]] = {
    400: InvalidRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    413: TooLarge,
    422: Unprocessable,
    429: RateLimited,
    500: MemloopError,
    501: NotSupported,
    503: Unavailable,
    504: Timeout,
}
_Model = TypeVar("_Model", bound=BaseModel)


class GatewayCalls(HttpClient):
    """The calls that the methods of a client are made of."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeouts: Timeouts = _TIMEOUTS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """``url`` may end in ``/v1``. Raises ValueError when it is not an http URL.

        ``tls`` is for an ``https`` URL; None trusts the system's authorities.
        """
        self.url = root_url(url)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        peer = f"gateway {self.url}"
        error_of = as_raised("gateway", _ERRORS)
        http = Http(self.url, peer=peer, error_of=error_of, headers=headers, timeouts=timeouts, tls=tls)
        super().__init__(http)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        params: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> bytes:
        headers = {"Idempotency-Key": sha256(name.encode()).hexdigest()} if name else None
        return await self._http.json(method, f"v1/{path}", body=body, params=params, headers=headers)

    async def _stream(
        self, method: str, path: str, *, body: Json | None = None, params: Mapping[str, str] | None = None
    ) -> AsyncGenerator[ServerEvent]:
        raw = None if body is None else orjson.dumps(body)
        async with self._http.open(method, f"v1/{path}", body=raw, params=params) as response:
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


def parsed(model: type[_Model], raw: bytes | str) -> _Model:
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise DependencyError(f"the gateway answered no {model.__name__}: is it another version?") from error


def body_of(model: BaseModel) -> Json:
    return cast(Json, model.model_dump(mode="json", exclude_none=True))


def segment(id_: str) -> str:
    """Return the id as one path segment, still unescaped. Raises NotFound when it cannot be one."""
    if "/" in id_ or id_ in {"", ".", ".."}:
        raise NotFound(f"there is nothing with the id {id_!r}")
    return id_
