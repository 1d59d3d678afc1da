"""Sends requests to one server: a base URL, at an address of its own if given, with its kept connections."""

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from yarl import URL

from memloop.wire.errors import Unavailable
from memloop_clients.http1 import Answer, Connection, Dialer, Pool, Proxy

_REPEATABLE: Final = frozenset({"GET", "PUT", "DELETE"})


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
    body: bytes | None
    params: Mapping[str, str] | None
    headers: Mapping[str, str]
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Peer:
    """What all replicas of a server have in common: its name in errors, our headers, time limits, and TLS.

    ``tls`` is the context for ``https`` URLs; None: one that trusts the system's authorities.
    """

    name: str
    headers: Mapping[str, str]
    timeouts: Timeouts
    tls: ssl.SSLContext | None = None


class Origin:
    """One server. ``base`` may hold a query, which every request repeats, and a user's name.

    ``address`` is an IP address of the base URL's host; None connects by name.
    """

    def __init__(self, base: URL, peer: Peer, *, proxy: Proxy | None = None, address: str | None = None) -> None:
        self._base = base
        dialer = Dialer(
            base,
            peer=peer.name,
            connect_s=peer.timeouts.connect_s,
            read_s=peer.timeouts.read_s,
            proxy=proxy,
            address=address,
            tls=peer.tls,
        )
        self._pool = Pool(dialer, age_s=peer.timeouts.connection_age_s)
        to_proxy = proxy if base.scheme == "http" else None
        self._authority = f"http://{_host(base)}" if to_proxy is not None else ""
        own = to_proxy.headers if to_proxy is not None else {}
        self._head = _lines({"Host": _host(base), **_constant_headers(base), **own, **peer.headers})

    async def ask(self, request: Request) -> tuple[Connection, Answer]:
        """Send a request and wait for the answer's head; give the connection back with ``ended``.

        Raises Unreachable when nothing was sent, else Unavailable, Timeout.
        """
        head = self._head_of(request)
        kept = self._pool.kept()
        if kept is not None:
            try:
                return kept, await _asked(kept, head, request.body)
            except Unavailable:  # it was closed at the other end, perhaps just when this request left
                if request.method not in _REPEATABLE:
                    raise
        opened = await self._pool.opened()
        return opened, await _asked(opened, head, request.body)

    def ended(self, connection: Connection, answer: Answer) -> None:
        """End an exchange. The connection is kept if another request may follow on it, else closed."""
        if connection.finished(answer):
            self._pool.keep(connection)

    def close(self) -> None:
        """Close the idle connections. Requests that run go on."""
        self._pool.close()

    def retire(self) -> None:
        """Close the idle connections, and each of the others when its request ends."""
        self._pool.retire()

    def _head_of(self, request: Request) -> bytes:
        base = _root(self._base) if request.beside else self._base
        target = _target(base, request.path) if not request.params else _with(base, request.path, request.params)
        body = request.body
        size = f"Content-Length: {len(body or b'')}\r\n" if body is not None or request.method != "GET" else ""
        lines = f"{self._head}{_lines(request.headers)}{size}"
        return f"{request.method} {self._authority}{target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


async def _asked(connection: Connection, head: bytes, body: bytes | None) -> Answer:
    try:
        return await connection.ask(head, body or b"")
    except BaseException:
        connection.abort()
        raise


@lru_cache(maxsize=64)
def _root(base: URL) -> URL:
    """Return the root of the server's own paths, beside its ``/v1``."""
    url = base.with_query(None)
    parts = [part for part in url.parts[1:] if part]
    return url.with_path("/" + "/".join(parts[:-1] if parts[-1:] == ["v1"] else parts))


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
