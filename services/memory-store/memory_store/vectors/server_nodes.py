"""Sends requests to whichever node of a Qdrant cluster can be reached."""

import contextlib
import ssl
from collections import deque
from collections.abc import Sequence

import httpx


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
        """Close the connections."""
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
