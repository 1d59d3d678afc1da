"""Makes the adapter of a Qdrant server. Only a store with such a server imports its client, which is large.

Sends requests to whichever node of a Qdrant cluster can be reached.
"""

import contextlib
import ssl
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

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


def server_at(
    urls: Sequence[str],
    sharding: ShardConfig,
    *,
    api_key: str | None,
    grpc_port: int | None,
    tls: ssl.SSLContext | None,
    pems: Mapping[str, Path | None],
) -> QdrantServer:
    """Return the adapter over the nodes of a server, which is not opened yet. Without ``grpc_port`` it speaks REST.

    ``tls`` is the context of ``https`` addresses; None: one that trusts the system's authorities. gRPC reads ``pems``,
    by the names of its own options.
    """

    def client(grpc_port: int | None = None) -> AsyncQdrantClient:
        given = pems.items() if grpc_port is not None else ()
        files = {name: file.read_bytes() for name, file in given if file is not None}
        return AsyncQdrantClient(
            url=urls[0],
            transport=AnyNode(urls, tls=tls) if len(urls) > 1 else None,
            verify=tls if tls is not None else True,
            grpc_options=files or None,
            grpc_port=grpc_port or 0,
            prefer_grpc=grpc_port is not None,
            api_key=api_key,
            timeout=_TIMEOUT_S,
            check_compatibility=False,
        )

    return QdrantServer(client(), sharding, points=RenewedClient(lambda: client(grpc_port)))
