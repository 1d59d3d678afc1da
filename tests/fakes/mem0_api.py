"""A strict stand-in for mem0's own API, from its reference: ``POST /v3/memories/`` with a token, filters and pages.

It refuses what the reference does not allow: another method, header, filter, field or page size.
"""

from typing import Any

from aiohttp import web

_KEY = "Token m0-secret"


class Mem0Api:
    """Holds memories by user; ``fails_at`` is the page that answers 500 once."""

    def __init__(self, memories: list[dict[str, Any]], *, fails_at: int | None = None) -> None:
        self.memories = memories
        self.fails_at = fails_at
        self.pages: list[int] = []

    def routes(self) -> list[web.RouteDef]:
        """The one route."""
        return [web.post("/v3/memories/", self._page)]

    async def _page(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != _KEY:
            return web.json_response({"detail": "Invalid token."}, status=401)
        body = await request.json()
        if (
            set(body) != {"filters"}
            or set(body["filters"]) != {"user_id"}
            or set(request.query) != {"page", "page_size"}
        ):
            return web.json_response({"error": "Invalid filters."}, status=400)
        page, size = int(request.query["page"]), int(request.query["page_size"])
        if not 1 <= size <= 100:
            return web.json_response({"error": "Invalid page size."}, status=400)
        self.pages.append(page)
        if page == self.fails_at:
            return web.json_response({"detail": "Server error."}, status=500)
        own = [memory for memory in self.memories if memory["user_id"] == body["filters"]["user_id"]]
        part = own[(page - 1) * size : page * size]
        more = page * size < len(own)
        following = str(request.url.update_query(page=page + 1)) if more else None
        previous = str(request.url.update_query(page=page - 1)) if page > 1 else None
        return web.json_response({"count": len(own), "next": following, "previous": previous, "results": part})
