"""A reverse proxy that serves an origin below a path prefix and removes the prefix, as an ingress does."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from yarl import URL

from tests.fakes.web_server import serving

_HOP: frozenset[str] = frozenset({"connection", "transfer-encoding", "content-length", "host", "content-encoding"})


@asynccontextmanager
async def below(prefix: str, origin: str) -> AsyncGenerator[str]:
    """The URL of the origin below the prefix."""
    async with aiohttp.ClientSession(auto_decompress=True) as http:

        async def forwarded(request: web.Request) -> web.Response:
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
            headers["Host"] = urlsplit(origin).netloc
            url = URL(origin + request.raw_path.removeprefix(prefix), encoded=True)
            body = await request.read()
            async with http.request(
                request.method, url, headers=headers, data=body or None, allow_redirects=False
            ) as answer:
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
                return web.Response(status=answer.status, headers=kept, body=await answer.read())

        async with serving([web.route("*", prefix + "/{path:.*}", forwarded)]) as url:
            yield url + prefix
