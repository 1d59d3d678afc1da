"""Sends requests to one peer, which may have replicas, as JSON or as bytes."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Self, TypedDict, TypeVar, Unpack, cast

import orjson
from pydantic import BaseModel, JsonValue, ValidationError
from yarl import URL

from memloop.wire.base import outgoing
from memloop.wire.errors import (
    Conflict,
    DependencyError,
    ErrorBody,
    ErrorEnvelope,
    Gone,
    InvalidRequest,
    MemloopError,
    NotFound,
    PreconditionFailed,
    RateLimited,
    Timeout,
    TooLarge,
    Unavailable,
    Unprocessable,
)
from memloop_clients.balancing.balancer import ProxyOf, ReplicaLoad, balancer_of
from memloop_clients.balancing.replica import Balancing
from memloop_clients.balancing.resolving import is_srv, plain
from memloop_clients.transport import ErrorOf, Origin, Peer, RawResponse, Request, Timeouts

_LONGEST_WAIT_S: Final = 24 * 3600.0
_JSON: Final = {"Content-Type": "application/json"}
_OF_REQUESTS: Final[Mapping[int, type[MemloopError]]] = {
    400: InvalidRequest,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: PreconditionFailed,
    413: TooLarge,
    422: Unprocessable,
    429: RateLimited,
    503: Unavailable,
    504: Timeout,
}
"""By statuses that a request may cause. Others, such as 401 for a wrong key, may be a fault of our side."""
_Model = TypeVar("_Model", bound=BaseModel)


class More(TypedDict, total=False):
    """What a request may have beside its body.

    Requests of one ``affinity`` go to the same replica as far as its load permits. ``beside``: the path is below the
    server's root, not the base URL.
    """

    params: Mapping[str, str] | None
    headers: Mapping[str, str] | None
    affinity: str | None
    beside: bool


def direct(url: URL) -> URL | None:
    """A way to every URL without a proxy."""
    del url


class Http:
    """A client of one peer. ``base_url`` may hold a query, which every request repeats, and a user's name.

    With ``balancing`` the peer may have replicas, among which each request gets one. ``tls`` is the context for
    ``https``; None: one that trusts the system's authorities.
    """

    def __init__(
        self,
        base_url: str,
        *,
        peer: str,
        error_of: ErrorOf,
        headers: Mapping[str, str],
        timeouts: Timeouts,
        proxy_of: ProxyOf = direct,
        balancing: Balancing | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.peer = peer
        self._total_s = timeouts.total_s
        shared, base = Peer(peer, headers, timeouts, error_of, tls), URL(base_url)
        self._origin = Origin(plain(base), shared, proxy=proxy_of(plain(base)))
        if is_srv(base):
            balancing = balancing or Balancing()
        self._balancer = balancer_of(base, shared, balancing, proxy_of=proxy_of) if balancing else None

    async def json(self, method: str, path: str, *, body: JsonValue = None, **more: Unpack[More]) -> bytes:
        """Return a successful call's body, within the time limit. Raises the peer's error for any other."""
        raw = None if body is None else orjson.dumps(body)
        try:
            async with asyncio.timeout(self._total_s), self.open(method, path, body=raw, **more) as response:
                await response.check()
                return await response.read()
        except TimeoutError as error:
            raise Timeout(f"the {self.peer} did not answer in time") from error

    async def _answer(
        self, model: type[_Model], method: str, path: str, *, body: BaseModel | JsonValue = None, **more: Unpack[More]
    ) -> _Model:
        """Return the answer of a successful call. Raises the peer's error, DependencyError for another form."""
        sent = cast(JsonValue, body.model_dump(mode="json")) if isinstance(body, BaseModel) else body
        return parsed(model, await self.json(method, path, body=sent, **more), peer=self.peer)

    @asynccontextmanager
    async def open(
        self, method: str, path: str, *, body: bytes | None = None, **more: Unpack[More]
    ) -> AsyncGenerator[RawResponse]:
        """Open a response, and close it on leaving."""
        response = await self.send(method, path, body=body, **more)
        try:
            yield response
        finally:
            response.close()

    def send(
        self, method: str, path: str, *, body: bytes | None = None, **more: Unpack[More]
    ) -> Awaitable[RawResponse]:
        """Open a response; the caller closes it. Raises Unreachable, Unavailable, Timeout, DependencyError."""
        headers = {**(_JSON if body is not None else {}), **outgoing(), **(more.get("headers") or {})}
        request = Request(method, path, body, more.get("params"), headers, more.get("beside", False))
        if self._balancer is None:
            return self._origin.send(request)
        return self._balancer.send(request, more.get("affinity"))

    def loads(self) -> Sequence[ReplicaLoad]:
        """Return the load of each replica; none while there is one server."""
        return self._balancer.loads() if self._balancer is not None else ()

    def is_suspended(self) -> bool:
        """Return whether all replicas have failed several times in a row, so that requests are refused."""
        return self._balancer is not None and self._balancer.is_suspended()

    async def close(self) -> None:
        await self._origin.close()
        if self._balancer is not None:
            await self._balancer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def own_error(raw: bytes | str) -> ErrorBody | None:
    """Return what one of our processes says of an error; None for a body of another form."""
    try:
        return ErrorEnvelope.model_validate_json(raw).error
    except ValidationError:
        return None


def as_raised(peer: str, *, also: Mapping[int, type[MemloopError]] | None = None) -> ErrorOf:
    """Return the reader of the errors of one of our processes: each as it was raised there, by its status.

    ``also`` are statuses beside those that every request may cause. A DependencyError stands for all others.
    """
    kinds = {**_OF_REQUESTS, **(also or {})}

    def error_of(status: int, raw: bytes, headers: Mapping[str, str]) -> MemloopError:
        kind, body, wait_s = kinds.get(status, DependencyError), own_error(raw), retry_after(headers)
        if body is None:
            return kind(f"the {peer} answered {status}", retry_after_s=wait_s)
        return kind(body.message, param=body.param, code=body.code, retry_after_s=wait_s)

    return error_of


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a ``Retry-After`` header, at most a day; None without one, or for a date."""
    try:
        asked_s = float(headers.get("Retry-After", ""))
    except ValueError:
        return None
    return min(max(0.0, asked_s), _LONGEST_WAIT_S)


def parsed(model: type[_Model], raw: bytes | str, *, peer: str) -> _Model:
    """Parse the answer of one of our processes. Raises DependencyError for one of another form."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise DependencyError(f"the {peer} answered no {model.__name__}: is it another version?") from error


def segment(id_: str) -> str:
    """Return the id as one path segment, still unescaped. Raises NotFound when it cannot be one."""
    if "/" in id_ or id_ in {"", ".", ".."}:
        raise NotFound(f"there is nothing with the id {id_!r}")
    return id_


def parse_json(raw: bytes, peer: str) -> JsonValue:
    """Parse the body of a success. Raises DependencyError when it is not JSON."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise DependencyError(f"the {peer} answered with something that is not JSON") from error
