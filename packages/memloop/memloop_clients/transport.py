"""One server over aiohttp: a base URL, its connections, explicit timeouts, and a typed error for every failure.

aiohttp keeps the connections, speaks to proxies and to TLS, holds back a peer whose bytes nobody reads, and repeats a
request whose kept connection was closed, where repeating is harmless (RFC 9110, section 9.2.2).
"""

import asyncio
import base64
import io
import random
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from memloop.wire.errors import ConnectRefused, DependencyError, MemloopError, Timeout, Unavailable, Unreachable

ErrorOf: TypeAlias = Callable[[int, bytes, Mapping[str, str]], MemloopError]
"""Makes an error of a peer's status, body and headers."""

_PLAIN: Final = frozenset({"", "identity"})
_RETRY_AFTER_S: Final = 1.0
# Shorter than the 5 s after which uvicorn, and so vLLM, hangs up: a request never goes into a closing connection.
_KEEP_ALIVE_S: Final = 4.0
_JITTER: Final = 0.25
"""Clients that began together do not all open new connections together."""
_TAKES_NO_WORK: Final = 503
"""A server that starts, drains or is full: the next connection may lead to another one."""
_NO_TLS: Final = {
    "WRONG_VERSION_NUMBER": ": it does not speak TLS; is its URL one of http://?",
    "RECORD_LAYER_FAILURE": ": it does not speak TLS; is its URL one of http://?",
}
"""What OpenSSL calls an answer that is not TLS."""
_AT_ONCE_BYTES: Final = 1 << 20
"""aiohttp sends longer bodies piece by piece, if it gets them as a file."""


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


@dataclass(frozen=True, slots=True)
class Request:
    """A request. ``path`` is below the base URL, or below the server's root (beside ``/v1``) with ``beside``."""

    method: str
    path: str
    body: bytes | None = None
    params: Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Peer:
    """What all replicas of a server have in common: its name in errors, our headers, time limits, and TLS.

    ``tls`` is the context for ``https`` URLs; None: one that trusts the system's authorities.
    """

    name: str
    headers: Mapping[str, str]
    timeouts: Timeouts
    error_of: ErrorOf
    tls: ssl.SSLContext | None = None

    def failure(self, error: Exception, *, way: str) -> DependencyError:
        """Convert aiohttp's error. ``way`` says in the message how the peer is reached."""
        if isinstance(error, aiohttp.ClientHttpProxyError):
            message = f"the proxy refused the connection to the {self.name} with status {error.status}"
            return ConnectRefused(message, retry_after_s=_RETRY_AFTER_S)
        if isinstance(error, aiohttp.ClientConnectorError):  # refused, no route, no such name, no valid certificate
            why = _tls_fault(error)
            return ConnectRefused(f"the {self.name} cannot be reached{way}{why}", retry_after_s=_RETRY_AFTER_S)
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return Unreachable(f"the {self.name} cannot be reached{way}", retry_after_s=_RETRY_AFTER_S)
        if isinstance(error, TimeoutError):
            return Timeout(f"the {self.name} did not answer in time")
        return Unavailable(f"the connection to the {self.name}{way} was lost", retry_after_s=_RETRY_AFTER_S)


def _tls_fault(error: aiohttp.ClientConnectorError) -> str:
    """Return why no TLS connection came about, as the end of a sentence; nothing for another fault."""
    cause = error.__cause__
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        found = error.certificate_error
        reason = found.verify_message if isinstance(found, ssl.SSLCertVerificationError) else "not valid"
        return f": its certificate is refused ({reason}); MEMLOOP_CONNECT_CA names authorities of your own"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        reason = cause.reason if isinstance(cause, ssl.SSLError) else "no reason given"
        return _NO_TLS.get(reason, f": TLS failed ({reason})")
    return ""


class RawResponse:
    """An open response: status and headers have arrived, and the body is read as it arrives.

    Always ``close`` it. Closing before the body's end closes the connection, which makes the peer stop.
    """

    def __init__(self, response: aiohttp.ClientResponse, peer: Peer, ended: Callable[[], None]) -> None:
        self._response = response
        self._peer = peer
        self._ended: Callable[[], None] | None = ended
        self._read: bytes | None = None

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names match in any case."""
        return self._response.headers

    @property
    def succeeded(self) -> bool:
        """Whether the peer did what it was asked for: a 2xx. Redirects are not followed."""
        return 200 <= self._response.status < 300

    async def some(self) -> bytes:
        """Return the next bytes; none at the end. Raises Unavailable when the connection is lost, Timeout."""
        if self._ended is None:
            return b""
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise self._peer.failure(error, way="") from error

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yield the body's bytes as they arrive. Raises as ``some`` does."""
        while chunk := await self.some():
            yield chunk

    async def read(self) -> bytes:
        """Return the whole body, or the rest after ``chunks``; repeated calls return the same."""
        if self._read is None:
            self._read = b"".join([chunk async for chunk in self.chunks()])
        return self._read

    async def check(self) -> None:
        """Raise the peer's error unless it has ``succeeded``."""
        if not self.succeeded:
            raise await self.error()

    async def error(self) -> MemloopError:
        """Return the error for a status other than a 2xx."""
        return self._peer.error_of(self.status, await self.read(), self.headers)

    def close(self) -> None:
        """Stop reading."""
        ended, self._ended = self._ended, None
        if ended is not None:
            self._response.close()
            ended()


class Origin:
    """One server. ``base`` may hold a query, which every request repeats, and a user's name.

    ``address`` is an IP address of the base URL's host; None connects by name. There is no limit on connections:
    callers bound their own concurrency.
    """

    def __init__(self, base: URL, peer: Peer, *, proxy: URL | None = None, address: str | None = None) -> None:
        self._base = base.with_user(None)
        self._peer = peer
        self._proxy = proxy
        self._way = " through the proxy" if proxy is not None else ""
        self._address = address
        self._tls: ssl.SSLContext | None = None
        own = {"User-Agent": "memloop", "Accept-Encoding": "identity"}
        if base.user is not None:
            pair = f"{base.user}:{base.password or ''}"
            own["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        self._headers = own | dict(peer.headers)
        self._pool: _Pool | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def send(self, request: Request, *, ended: Callable[[], None] = lambda: None) -> RawResponse:
        """Send a request and wait for the answer's head; the caller closes it, which calls ``ended``.

        Raises Unreachable when nothing was sent, else Unavailable, Timeout; DependencyError for a compressed answer.
        """
        pool = self._pool
        if pool is None or asyncio.get_running_loop().time() >= pool.retires_at:
            pool = self._renewed()
        url = _url(self._base, request.path, beside=request.beside)
        body = request.body
        pool.running += 1
        try:
            response = await pool.session.request(
                request.method,
                url.update_query(request.params) if request.params else url,
                data=io.BytesIO(body) if body is not None and len(body) > _AT_ONCE_BYTES else body,
                headers=request.headers,
                allow_redirects=False,
            )
        except BaseException as error:
            self._leave(pool)
            if isinstance(error, aiohttp.ClientError | OSError):
                raise self._peer.failure(error, way=self._way) from error
            raise
        if response.status == _TAKES_NO_WORK:
            self.retire()

        if response.headers.get("Content-Encoding", "") not in _PLAIN:
            self._leave(pool)
            response.close()
            raise DependencyError(f"the {self._peer.name} sent a compressed answer, which the request ruled out")

        def both() -> None:
            self._leave(pool)
            ended()

        return RawResponse(response, self._peer, both)

    def retire(self) -> None:
        """Use no present connection again. Requests that run go on."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.retired = True
            self._leave(pool, requests=0)

    async def close(self) -> None:
        """Close the idle connections, and the others when their requests end."""
        self.retire()
        if self._closing:
            await asyncio.wait(self._closing)

    def _renewed(self) -> "_Pool":
        """Return a new pool, in which no connection is older than it."""
        self.retire()
        limits = self._peer.timeouts
        if self._base.scheme == "https" and self._tls is None:
            self._tls = self._peer.tls or ssl.create_default_context()
        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=_KEEP_ALIVE_S,
            ssl=self._tls or True,
            resolver=None if self._address is None else _Fixed(self._address),
        )
        session = aiohttp.ClientSession(
            connector=connector,
            headers=self._headers,
            proxy=self._proxy,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=16_384,  # what a client that never reads makes this process hold
            timeout=aiohttp.ClientTimeout(connect=limits.connect_s, sock_read=limits.read_s),
        )
        age_s = limits.connection_age_s * random.uniform(1 - _JITTER, 1 + _JITTER)
        self._pool = pool = _Pool(session, asyncio.get_running_loop().time() + age_s)
        return pool

    def _leave(self, pool: "_Pool", *, requests: int = 1) -> None:
        """Count the requests as ended, and close a retired pool after its last one."""
        pool.running -= requests
        if pool.retired and not pool.running:
            task = asyncio.create_task(pool.session.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


@dataclass(slots=True)
class _Pool:
    """A session whose connections are no older than it; ``retires_at`` on the loop's clock."""

    session: aiohttp.ClientSession
    retires_at: float
    running: int = 0
    retired: bool = False


class _Fixed(AbstractResolver):
    """Resolves every name to one address: TLS and ``Host`` keep the name."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        flags = socket.AI_NUMERICHOST
        return [ResolveResult(hostname=host, host=self._address, port=port, family=family, proto=0, flags=flags)]

    async def close(self) -> None:
        """See aiohttp."""


@lru_cache(maxsize=256)
def _url(base: URL, path: str, *, beside: bool) -> URL:
    """Return the URL of a path below the base URL, or of the server's own path beside its ``/v1``."""
    if beside:
        parts = [part for part in base.parts[1:] if part]
        base = base.with_query(None).with_path("/" + "/".join(parts[:-1] if parts[-1:] == ["v1"] else parts))
    url = base / path
    return url.with_query(base.query) if base.raw_query_string else url
