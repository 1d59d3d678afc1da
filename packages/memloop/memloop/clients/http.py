"""Sends requests to one peer: a base URL, kept connections, explicit timeouts, and a typed error for every failure."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self, TypeAlias

import orjson
from pydantic import JsonValue
from yarl import URL

from memloop.clients.http1 import Answer, Connection, Dialer, Pool, Proxy
from memloop.wire.correlation import outgoing
from memloop.wire.errors import DependencyError, MemloopError, Timeout, Unavailable

_REPEATABLE: Final = frozenset({"GET", "PUT", "DELETE"})
_PLAIN: Final = frozenset({"", "identity"})
_JSON: Final = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to connect, between two reads, and for a whole call (``total_s``; a stream has no total).

    A connection older than ``connection_age_s`` (a quarter more or less, at random) gets no further request. Balancers
    choose a server per connection: so a new server gets its share, and a stopping one gets no more.
    """

    connect_s: float = 5.0
    read_s: float = 300.0
    total_s: float = 900.0
    connection_age_s: float = 30.0


class RawResponse:
    """An open response: status and headers have arrived, and the body is read as it arrives.

    Always ``close`` it. Closing before the body's end closes the connection, which makes the peer stop.
    """

    def __init__(self, connection: Connection, answer: Answer, *, pool: Pool, error_of: "ErrorOf") -> None:
        self._connection: Connection | None = connection
        self._answer = answer
        self._pool = pool
        self._error_of = error_of
        self._read: list[bytes] = []

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names match in any case."""
        return self._answer.headers

    async def some(self) -> bytes:
        """Return the next bytes; none at the end. Raises Unavailable when the connection is lost, Timeout."""
        return await self._connection.some(self._answer) if self._connection is not None else b""

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

    async def error(self) -> MemloopError:
        """Return the error for a status of 400 or more."""
        return self._error_of(self.status, await self.read(), self.headers)

    def close(self) -> None:
        """Stop reading."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.finished(self._answer):
            self._pool.keep(connection)


ErrorOf: TypeAlias = Callable[[int, bytes, Mapping[str, str]], MemloopError]
"""Makes an error of a peer's status, body and headers."""


class Http:
    """Sends requests to one peer. ``base_url`` may hold a query, which every request repeats, and a user's name."""

    def __init__(
        self,
        base_url: str,
        *,
        peer: str,
        error_of: ErrorOf,
        headers: Mapping[str, str],
        timeouts: Timeouts,
        proxy: Proxy | None = None,
    ) -> None:
        self._base = URL(base_url)
        self._peer = peer
        self._error_of = error_of
        self._total_s = timeouts.total_s
        dialer = Dialer(self._base, peer=peer, connect_s=timeouts.connect_s, read_s=timeouts.read_s, proxy=proxy)
        self._pool = Pool(dialer, age_s=timeouts.connection_age_s)
        to_proxy = proxy if self._base.scheme == "http" else None
        self._origin = f"http://{_host(self._base)}" if to_proxy is not None else ""
        own = to_proxy.headers if to_proxy is not None else {}
        self._head = _lines({"Host": _host(self._base), **_constant_headers(self._base), **own, **headers})

    async def json(
        self,
        method: str,
        path: str,
        *,
        body: JsonValue = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return a successful call's body, within the time limit. Raises the peer's error for a status from 400 on."""
        raw = None if body is None else orjson.dumps(body)
        try:
            async with (
                asyncio.timeout(self._total_s),
                self.open(method, path, body=raw, params=params, headers=headers) as response,
            ):
                if response.status >= 400:
                    raise await response.error()
                return await response.read()
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
    ) -> AsyncGenerator[RawResponse]:
        """Open a response, and close it on leaving."""
        response = await self.send(method, path, body=body, params=params, headers=headers)
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
    ) -> RawResponse:
        """Open a response; the caller closes it. Raises Unreachable, Unavailable, Timeout, DependencyError."""
        more = {**(_JSON if body is not None else {}), **outgoing(), **(headers or {})}
        target = _target(self._base, path) if not params else _with(self._base, path, params)
        size = f"Content-Length: {len(body or b'')}\r\n" if body is not None or method != "GET" else ""
        head = f"{method} {self._origin}{target} HTTP/1.1\r\n{self._head}{_lines(more)}{size}\r\n".encode("latin-1")
        kept = self._pool.kept()
        if kept is not None:
            try:
                return await self._asked(kept, head, body)
            except Unavailable:  # it was closed at the other end, perhaps just when this request left
                if method not in _REPEATABLE:
                    raise
        return await self._asked(await self._pool.opened(), head, body)

    async def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _asked(self, connection: Connection, head: bytes, body: bytes | None) -> RawResponse:
        try:
            answer = await connection.ask(head, body or b"")
        except BaseException:
            connection.abort()
            raise
        response = RawResponse(connection, answer, pool=self._pool, error_of=self._error_of)
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@lru_cache(maxsize=256)
def _target(base: URL, path: str) -> str:
    """Return the request line's target for a path below the base URL."""
    url = base / path
    return (url.with_query(base.query) if base.raw_query_string else url).raw_path_qs


def _with(base: URL, path: str, params: Mapping[str, str]) -> str:
    return (base / path).with_query(base.query).update_query(params).raw_path_qs


def _host(url: URL) -> str:
    return url.host_port_subcomponent or ""


def _constant_headers(url: URL) -> dict[str, str]:
    headers = {"User-Agent": "memloop", "Accept": "*/*", "Accept-Encoding": "identity"}
    if url.user is None:
        return headers
    pair = f"{url.user}:{url.password or ''}"
    return headers | {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _lines(headers: Mapping[str, str]) -> str:
    for name, value in headers.items():
        if "\r" in value or "\n" in value or "\0" in value:
            raise ValueError(f"the header {name} must be one line")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a ``Retry-After`` header; None without one, or for a date."""
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return None


def parse_json(raw: bytes, peer: str) -> JsonValue:
    """Parse the body of a success. Raises DependencyError when it is not JSON."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise DependencyError(f"the {peer} answered with something that is not JSON") from error
