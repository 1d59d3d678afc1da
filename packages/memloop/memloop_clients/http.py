"""Sends requests to one peer: a base URL, kept connections, explicit timeouts, and a typed error for every failure."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, Self, TypeAlias

import orjson
from pydantic import JsonValue
from yarl import URL

from memloop.wire.correlation import outgoing
from memloop.wire.errors import DependencyError, MemloopError, Timeout
from memloop_clients.balancing import Balancing, ProxyOf, ReplicaLoad, balancer_of, is_srv, plain
from memloop_clients.http1 import Answer, Connection, Proxy
from memloop_clients.origin import Origin, Peer, Request, Timeouts

_PLAIN: Final = frozenset({"", "identity"})
_LONGEST_WAIT_S: Final = 24 * 3600.0
_JSON: Final = {"Content-Type": "application/json"}


def direct(url: URL) -> Proxy | None:
    """A way to every URL without a proxy."""
    del url


ErrorOf: TypeAlias = Callable[[int, bytes, Mapping[str, str]], MemloopError]
"""Makes an error of a peer's status, body and headers."""
_Ended: TypeAlias = Callable[[Connection, Answer], None]


async def _nothing() -> bytes:
    return b""


class RawResponse:
    """An open response: status and headers have arrived, and the body is read as it arrives.

    Always ``close`` it. Closing before the body's end closes the connection, which makes the peer stop.
    """

    def __init__(self, connection: Connection, answer: Answer, *, ended: _Ended, error_of: ErrorOf) -> None:
        self._connection: Connection | None = connection
        self._answer = answer
        self._ended = ended
        self._error_of = error_of
        self._read: list[bytes] = []
        self.some: Callable[[], Awaitable[bytes]] = partial(connection.some, answer)
        """Return the next bytes; none at the end. Raises Unavailable when the connection is lost, Timeout."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names match in any case."""
        return self._answer.headers

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the body's bytes as they arrive. Raises as ``some`` does."""
        while chunk := await self.some():
            yield chunk

    async def read(self) -> bytes:
        """Return the whole body, or the rest after ``chunks``; repeated calls return the same."""
        while chunk := await self.some():
            self._read.append(chunk)
        if len(self._read) != 1:
            self._read = [b"".join(self._read)]
        return self._read[0]

    @property
    def succeeded(self) -> bool:
        """Whether the peer did what it was asked for: a 2xx. Redirects are not followed."""
        return 200 <= self._answer.status < 300

    async def check(self) -> None:
        """Raise the peer's error unless it has ``succeeded``."""
        if not self.succeeded:
            raise await self.error()

    async def error(self) -> MemloopError:
        """Return the error for a status other than a 2xx."""
        return self._error_of(self.status, await self.read(), self.headers)

    def close(self) -> None:
        """Stop reading."""
        connection, self._connection, self.some = self._connection, None, _nothing
        if connection is not None:
            self._ended(connection, self._answer)


class Http:
    """Sends requests to one peer. ``base_url`` may hold a query, which every request repeats, and a user's name.

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
        self._peer = peer
        self._error_of = error_of
        self._total_s = timeouts.total_s
        shared, base = Peer(peer, headers, timeouts, tls), URL(base_url)
        self._origin = Origin(plain(base), shared, proxy=proxy_of(plain(base)))
        if is_srv(base):
            balancing = balancing or Balancing()
        self._balancer = balancer_of(base, shared, balancing, proxy_of=proxy_of) if balancing else None

    async def json(
        self,
        method: str,
        path: str,
        *,
        body: JsonValue = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        affinity: str | None = None,
        beside: bool = False,
    ) -> bytes:
        """Return a successful call's body, within the time limit. Raises the peer's error for any other."""
        raw = None if body is None else orjson.dumps(body)
        try:
            async with asyncio.timeout(self._total_s):
                response = await self.send(
                    method, path, body=raw, params=params, headers=headers, affinity=affinity, beside=beside
                )
                try:
                    await response.check()
                    return await response.read()
                finally:
                    response.close()
        except TimeoutError as error:
            raise Timeout(f"the {self._peer} did not answer in time") from error

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        affinity: str | None = None,
        beside: bool = False,
    ) -> AsyncGenerator[RawResponse]:
        """Open a response, and close it on leaving."""
        response = await self.send(
            method, path, body=body, params=params, headers=headers, affinity=affinity, beside=beside
        )
        try:
            yield response
        finally:
            response.close()

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        affinity: str | None = None,
        beside: bool = False,
    ) -> RawResponse:
        """Open a response; the caller closes it. Raises Unreachable, Unavailable, Timeout, DependencyError.

        Requests of one ``affinity`` go to the same replica as far as its load permits. ``beside``: the path is below
        the server's root, not the base URL.
        """
        more = {**(_JSON if body is not None else {}), **outgoing(), **(headers or {})}
        request = Request(method, path, body, params, more, beside)
        if self._balancer is None:
            connection, answer = await self._origin.ask(request)
            return self._opened(connection, answer, self._origin.ended)
        taken = await self._balancer.ask(request, affinity)
        return self._opened(taken.connection, taken.answer, taken.ended)

    @property
    def replicas(self) -> int:
        """The number of replicas; 1 for one server."""
        return self._balancer.replicas if self._balancer is not None else 1

    def loads(self) -> Sequence[ReplicaLoad]:
        """Return the load of each replica; none while there is one server."""
        return self._balancer.loads() if self._balancer is not None else ()

    async def close(self) -> None:
        """Close the idle connections."""
        self._origin.close()
        if self._balancer is not None:
            await self._balancer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _opened(self, connection: Connection, answer: Answer, ended: _Ended) -> RawResponse:
        response = RawResponse(connection, answer, ended=ended, error_of=self._error_of)
        if answer.headers.get("content-encoding", "") not in _PLAIN:
            response.close()
            raise DependencyError(f"the {self._peer} sent a compressed answer, which the request ruled out")
        return response


class HttpClient:
    """A client of one peer, which closes its connections on leaving."""

    def __init__(self, http: Http) -> None:
        self._http = http

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    @property
    def replicas(self) -> int:
        """The number of replicas that the client balances over; 1 for one server."""
        return self._http.replicas

    def loads(self) -> Sequence[ReplicaLoad]:
        """Return the load of each replica that the client balances over; none while there is one server."""
        return self._http.loads()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a ``Retry-After`` header, at most a day; None without one, or for a date."""
    try:
        asked_s = float(headers.get("Retry-After", ""))
    except ValueError:
        return None
    return min(max(0.0, asked_s), _LONGEST_WAIT_S)


def parse_json(raw: bytes, peer: str) -> JsonValue:
    """Parse the body of a success. Raises DependencyError when it is not JSON."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise DependencyError(f"the {peer} answered with something that is not JSON") from error
