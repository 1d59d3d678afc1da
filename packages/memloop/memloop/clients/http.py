"""One peer behind HTTP: a base URL, a session, explicit timeouts, and typed errors for all that can go wrong."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Self, TypeAlias

import aiohttp
import orjson
from pydantic import JsonValue
from yarl import URL

from memloop.wire.errors import ConnectRefused, DependencyError, MemloopError, Timeout, Unavailable, Unreachable

# Shorter than the 5 s after which uvicorn, and so vLLM, hangs up: a request never goes into a closing connection.
_KEEP_ALIVE_S = 4.0
_NO_LIMIT = 0
_RETRY_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In seconds: to connect, between two reads, and for a whole call (``total_s``; a stream has no total)."""

    connect_s: float = 5.0
    read_s: float = 300.0
    total_s: float = 900.0


class RawResponse:
    """An open response: its status and headers are there, its body is read as it comes."""

    def __init__(self, response: aiohttp.ClientResponse, peer: str, error_of: "ErrorOf") -> None:
        self._response = response
        self._peer = peer
        self._error_of = error_of

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names match in any case."""
        return self._response.headers

    async def chunks(self) -> AsyncGenerator[bytes]:
        """The body's bytes as they arrive. Raises DependencyError when the connection is lost or falls silent."""
        with typed_failures(self._peer):
            async for chunk in self._response.content.iter_any():
                yield chunk

    async def read(self) -> bytes:
        """The whole rest of the body."""
        with typed_failures(self._peer):
            return await self._response.read()

    async def error(self) -> MemloopError:
        """What a status of 400 or more means."""
        return self._error_of(self.status, await self.read(), self.headers)


ErrorOf: TypeAlias = Callable[[int, bytes, Mapping[str, str]], MemloopError]
"""Makes an error of a peer's status, body and headers."""


class Http:
    """Requests to one peer. ``base_url`` may carry a query, which every request repeats.

    The session is made on first use and closed by ``close``; one that was passed in belongs to the caller.
    """

    def __init__(
        self,
        base_url: str,
        *,
        peer: str,
        error_of: ErrorOf,
        headers: Mapping[str, str],
        timeouts: Timeouts,
        session: aiohttp.ClientSession | None = None,
    ) -> None:
        self._base = URL(base_url)
        self._peer = peer
        self._error_of = error_of
        self._headers = {"Accept-Encoding": "identity", **headers}
        self._limits = _limits(timeouts, total_s=None)
        self._limits_when_timed = _limits(timeouts, total_s=timeouts.total_s)
        self._session = session
        self._owned = session is None

    def url_of(self, path: str) -> URL:
        """The address of a path below the base URL."""
        url = self._base / path
        return url.with_query(self._base.query) if self._base.raw_query_string else url

    async def json(
        self,
        method: str,
        path: str,
        *,
        body: JsonValue = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """The body of a success. Raises the peer's error for a status of 400 or more."""
        raw = None if body is None else orjson.dumps(body)
        async with self.open(method, path, body=raw, params=params, headers=headers, timed=True) as response:
            if response.status >= 400:
                raise await response.error()
            return await response.read()

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timed: bool = False,
    ) -> AsyncGenerator[RawResponse]:
        """An open response. To leave before its end closes the connection, which tells the peer to stop.

        ``timed`` puts a limit on the whole call, not only on its silences.
        """
        kind = {} if body is None else {"Content-Type": "application/json"}
        url = self.url_of(path)
        with typed_failures(self._peer):
            response = await self._open_session().request(
                method,
                url.update_query(params) if params else url,
                data=body,
                headers={**self._headers, **kind, **(headers or {})},
                timeout=self._limits_when_timed if timed else self._limits,
                allow_redirects=False,
            )
        try:
            yield RawResponse(response, self._peer, self._error_of)
        finally:
            response.close()

    async def close(self) -> None:
        """Close the session, unless it was passed in."""
        if self._owned and self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=_NO_LIMIT, keepalive_timeout=_KEEP_ALIVE_S)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


def _limits(timeouts: Timeouts, *, total_s: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, sock_connect=timeouts.connect_s, sock_read=timeouts.read_s)


@contextmanager
def typed_failures(peer: str) -> Generator[None]:
    """What the network does, as errors of ours. The peer's address stays out of the message: clients see it."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise Unreachable(f"the {peer} cannot be reached", retry_after_s=_RETRY_AFTER_S) from error
    except aiohttp.ClientConnectorError as error:
        raise ConnectRefused(f"the {peer} cannot be reached", retry_after_s=_RETRY_AFTER_S) from error
    except TimeoutError as error:
        raise Timeout(f"the {peer} did not answer in time") from error
    except aiohttp.ClientError as error:
        raise Unavailable(f"the connection to the {peer} was lost", retry_after_s=_RETRY_AFTER_S) from error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds of a ``Retry-After`` header; None when there is none, or a date."""
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return None


def parse_json(raw: bytes, peer: str) -> JsonValue:
    """A success's body. Raises DependencyError when it is not JSON."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise DependencyError(f"the {peer} answered with something that is not JSON") from error
