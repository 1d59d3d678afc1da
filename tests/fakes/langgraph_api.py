"""A strict stand-in for the store of a LangGraph deployment: ``POST /store/items/search``, as its SDK sends it."""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

KEY = "lg-secret"
_FIELDS = {"namespace_prefix", "filter", "limit", "offset", "query", "refresh_ttl"}


class LangGraphStore:
    """Holds items. The request of number ``breaks_at`` is answered with 500."""

    def __init__(self, items: Sequence[dict[str, Any]], *, breaks_at: int = -1) -> None:
        self.items = items
        self.breaks_at = breaks_at
        self._served = 0

    def routes(self) -> list[web.RouteDef]:
        """The one route."""
        return [web.post("/store/items/search", self._search)]

    async def _search(self, request: web.Request) -> web.Response:
        if request.headers.get("x-api-key") != KEY:
            raise web.HTTPForbidden
        asked = await request.json()
        if not set(asked) <= _FIELDS or not isinstance(asked["namespace_prefix"], list):
            raise web.HTTPUnprocessableEntity
        self._served += 1
        if self._served == self.breaks_at:
            raise web.HTTPInternalServerError
        prefix, start = asked["namespace_prefix"], asked.get("offset", 0)
        found = [item for item in self.items if item["namespace"][: len(prefix)] == prefix]
        return web.json_response({"items": found[start : start + asked.get("limit", 10)]})
