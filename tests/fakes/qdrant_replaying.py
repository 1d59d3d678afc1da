"""A Qdrant stand-in that repeats its answers until a write. Run: ``python -m tests.fakes.qdrant_replaying PORT``.

A benchmark's searches then cost the stand-in a look-up, so that the store beside it is what is measured.
"""

import asyncio
import re
import sys
from dataclasses import dataclass, field

import uvloop
from aiohttp import web

from tests.fakes.qdrant_server import QdrantStandIn

_MOMENT = re.compile(rb'"\d{4}-\d\d-\d\dT[^"]*"')
"""The store asks for what is live now."""
_READS = ("/query", "/query/batch", "/scroll", "/count", "/search", "/facet")


@dataclass
class Replaying(QdrantStandIn):
    """Remembers each answer to a read of points, by path and body."""

    remembered: dict[tuple[str, bytes], bytes] = field(default_factory=dict[tuple[str, bytes], bytes])

    async def _points(self, request: web.Request) -> web.Response:
        asked = request.path, _MOMENT.sub(b"", await request.read())
        reads = request.method == "POST" and (request.path.endswith(("/points", *_READS)))
        if not reads:
            self.remembered.clear()
        elif (known := self.remembered.get(asked)) is not None:
            return web.Response(body=known, content_type="application/json")
        answer = await super()._points(request)
        if reads and answer.status == 200:
            assert isinstance(answer.body, bytes)
            self.remembered[asked] = answer.body
        return answer


async def serve(port: int) -> None:
    """Serve until the process ends."""
    async with Replaying().running(port):
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
