"""The Qdrant stand-in, with a note of who still reads which collection."""

import time
from dataclasses import dataclass, field

from aiohttp import web

from tests.fakes.qdrant_server import QdrantStandIn, failed

_READS = ("scroll", "count", "query", "batch", "facet")


@dataclass
class QdrantWithPoints(QdrantStandIn):
    """``last_read``: when each collection was last read; ``swapped_at``: when an alias was last changed."""

    last_read: dict[str, float] = field(default_factory=dict[str, float])
    swapped_at: float = 0.0

    async def _change_aliases(self, request: web.Request) -> web.Response:
        self.swapped_at = time.monotonic()
        return await super()._change_aliases(request)

    async def _points(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.collections:
            return failed(404, f"Not found: Collection `{name}` doesn't exist!")
        if request.path.endswith(_READS):
            self.last_read[name] = time.monotonic()
        return await super()._points(request)
