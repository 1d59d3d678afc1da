"""Opens connections to one peer, direct or through a proxy.

An ``https`` peer is reached through a tunnel (CONNECT), an ``http`` peer by asking the proxy for the whole URL. Source:
RFC 9110, section 9.3.6, "CONNECT"; RFC 9112, section 3.2, "Request Target".
"""

import asyncio
import ssl
from typing import cast

from yarl import URL

from memloop.patience import patient
from memloop.wire.errors import ConnectRefused, Timeout, Unavailable, Unreachable
from memloop_clients.http1.connection import Connection
from memloop_clients.http1.proxy import Proxy

_RETRY_AFTER_S = 1.0
_SUCCESS = range(200, 300)


class Dialer:
    """Opens connections. ``connect_s`` bounds the whole attempt, including the proxy's answer and TLS.

    ``address`` is an IP address of the URL's host; None connects by name. ``tls`` is the context for an ``https`` URL;
    None: one that trusts the system's authorities.
    """

    def __init__(
        self,
        url: URL,
        *,
        peer: str,
        connect_s: float,
        read_s: float,
        proxy: Proxy | None,
        address: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._url = url
        self._peer = peer
        self._connect_s = connect_s
        self._read_s = read_s
        self._proxy = proxy
        self._address = address
        self._tls = tls

    async def open(self) -> Connection:
        """Open a connection. Raises Unreachable, ConnectRefused."""
        try:
            async with patient(self._connect_s):
                if self._proxy is None:
                    host = self._address or self._url.raw_host or ""
                    return await self._connected(host, self._url.port or 0, tls=self._context())
                direct = await self._connected(self._proxy.host, self._proxy.port, tls=None)
                context = self._context()
                return direct if context is None else await self._tunnelled(direct, context, self._proxy)
        except TimeoutError as error:
            raise Unreachable(self._cannot_be_reached, retry_after_s=_RETRY_AFTER_S) from error
        except OSError as error:  # refused, no route, no such name, no valid certificate
            raise ConnectRefused(self._cannot_be_reached, retry_after_s=_RETRY_AFTER_S) from error

    @property
    def _cannot_be_reached(self) -> str:
        way = " through the proxy" if self._proxy is not None else ""
        return f"the {self._peer} cannot be reached{way}"

    async def _connected(self, host: str, port: int, *, tls: ssl.SSLContext | None) -> Connection:
        name = self._url.raw_host if tls is not None else None
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(self._new, host, port, ssl=tls, server_hostname=name)
        return connection

    async def _tunnelled(self, outer: Connection, context: ssl.SSLContext, proxy: Proxy) -> Connection:
        try:
            await self._ask_for_tunnel(outer, proxy)
            inner = self._new()
            transport = await asyncio.get_running_loop().start_tls(
                outer.transport, inner, context, server_hostname=self._url.raw_host
            )
            inner.connection_made(cast(asyncio.Transport, transport))
        except BaseException:
            outer.abort()
            raise
        return inner

    async def _ask_for_tunnel(self, outer: Connection, proxy: Proxy) -> None:
        place = f"{self._url.host_subcomponent}:{self._url.port}"
        lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}", *(f"{name}: {v}" for name, v in proxy.headers.items())]
        try:
            answer = await outer.ask("".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1"), b"")
        except (Unavailable, Timeout) as error:
            raise ConnectRefused(self._cannot_be_reached, retry_after_s=_RETRY_AFTER_S) from error
        if answer.status not in _SUCCESS:
            message = f"the proxy refused the connection to the {self._peer} with status {answer.status}"
            raise ConnectRefused(message, retry_after_s=_RETRY_AFTER_S)

    def _new(self) -> Connection:
        return Connection(self._peer, read_s=self._read_s)

    def _context(self) -> ssl.SSLContext | None:
        if self._url.scheme != "https":
            return None
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls
