"""Makes the adapter of a Qdrant server. Only a store with such a server imports its client, which is large.

Sends requests to whichever node of a Qdrant cluster can be reached.
"""

import contextlib
import ssl
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from qdrant_client import AsyncQdrantClient

from memory_store.vectors.qdrant_server import QdrantServer
from memory_store.vectors.server_clients import RenewedClient
from memory_store.vectors.server_setup import ShardConfig


class AnyNode(httpx.AsyncBaseTransport):
    """One node takes all requests until it fails. Its successor then takes them, and the one that found no connection.

    A request that was sent is not repeated: the node may have carried it out. The nodes' addresses have one path.
    """

    def __init__(self, urls: Sequence[str], *, tls: ssl.SSLContext | None = None) -> None:
        self._nodes = deque(httpx.URL(url) for url in urls)
        self._http = httpx.AsyncHTTPTransport(verify=tls if tls is not None else True)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request. Raises what the last node's connection raises when none takes it."""
        for _ in range(len(self._nodes) - 1):
            with contextlib.suppress(httpx.ConnectError, httpx.ConnectTimeout):
                return await self._sent(request)
        return await self._sent(request)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        node = self._nodes[0]
        try:
            url = request.url.copy_with(scheme=node.scheme, host=node.host, port=node.port)
            others = [(name, value) for name, value in request.headers.raw if name.lower() != b"host"]
            headers = [(b"Host", url.netloc), *others]
            return await self._http.handle_async_request(
                httpx.Request(
                    request.method, url, headers=headers, stream=request.stream, extensions=request.extensions
                )
            )
        except httpx.TransportError:
            if self._nodes[0] is node:
                self._nodes.rotate(-1)
            raise


_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Pems:
    """PEM files: authorities, in the place of gRPC's own, and the certificate that is shown, with its key."""

    authorities: Path | None = None
    chain: Path | None = None
    key: Path | None = None

    def for_grpc(self) -> dict[str, Any] | None:
        """The channel's options; None where there is no file."""
        given = {
            "root_certificates": self.authorities,
            "certificate_chain": self.chain,
            "private_key": self.key or self.chain,
        }
        return {name: file.read_bytes() for name, file in given.items() if file is not None} or None


@dataclass(frozen=True, slots=True)
class Address:
    """The nodes of a server, its key, and the port of gRPC; None: everything goes over REST.

    ``tls`` is the context of ``https`` addresses; None: one that trusts the system's authorities. gRPC reads ``pems``.
    """

    urls: Sequence[str]
    api_key: str | None
    grpc_port: int | None
    tls: ssl.SSLContext | None = None
    pems: Pems = Pems()


def server_at(address: Address, sharding: ShardConfig) -> QdrantServer:
    """Return the adapter, which is not opened yet."""
    points = RenewedClient(lambda: _client(address, address.grpc_port))
    return QdrantServer(_client(address), sharding, points=points)


def _client(address: Address, grpc_port: int | None = None) -> AsyncQdrantClient:
    return AsyncQdrantClient(
        url=address.urls[0],
        transport=AnyNode(address.urls, tls=address.tls) if len(address.urls) > 1 else None,
        verify=address.tls if address.tls is not None else True,
        grpc_options=address.pems.for_grpc() if grpc_port is not None else None,
        grpc_port=grpc_port or 0,
        prefer_grpc=grpc_port is not None,
        api_key=address.api_key,
        timeout=_TIMEOUT_S,
        check_compatibility=False,
    )
