"""Strict stand-ins for Zep's own API, from its reference: version 4, and the one before, below ``/api/v2``.

They refuse what the reference does not allow: another header, parameter, field, page size or cursor.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

KEY = "z-secret"
USER_UUID = "5f1c0a52-0000-4000-8000-000000000001"
_MOST = 100


def _refused(status: int, message: str) -> web.HTTPException:
    error = {400: web.HTTPBadRequest, 401: web.HTTPUnauthorized, 404: web.HTTPNotFound}[status]
    return error(text=f'{{"message": "{message}"}}', content_type="application/json")


def _allowed(request: web.Request, *parameters: str) -> Mapping[str, str]:
    if request.headers.get("Authorization") != f"Api-Key {KEY}":
        raise _refused(401, "unauthorized")
    if not set(request.query) <= set(parameters):
        raise _refused(400, "unknown parameter")
    return request.query


class Zep:
    """One user's threads (id to messages) and facts.

    The request of number ``busy_at`` is answered with 429, that of ``breaks_at`` with 500.
    """

    def __init__(
        self,
        user_id: str,
        threads: Mapping[str, Sequence[dict[str, Any]]],
        facts: Sequence[dict[str, Any]],
        *,
        busy_at: int = -1,
        breaks_at: int = -1,
    ) -> None:
        self.user_id = user_id
        self.threads = threads
        self.facts = facts
        self.busy_at = busy_at
        self.breaks_at = breaks_at
        self._served = 0

    def routes(self) -> list[web.RouteDef]:
        """The routes of both versions."""
        return [
            web.post("/api/v4/users/lookup", self._user),
            web.get("/api/v4/threads", self._list_threads),
            web.get("/api/v4/threads/{uuid}/messages", self._list_messages),
            web.post("/api/v4/graphs/{uuid}/edges/list", self._list_edges),
            web.get("/api/v2/users/{user}/threads", self._threads_before),
            web.get("/api/v2/threads/{thread}/messages", self._messages_before),
            web.post("/api/v2/graph/edge/user/{user}", self._edges_before),
        ]

    async def _user(self, request: web.Request) -> web.Response:
        _allowed(request)
        asked = await request.json()
        if {name for name, value in asked.items() if value is not None} != {"user_id"}:
            raise _refused(400, "name one id")
        if asked["user_id"] != self.user_id:
            raise _refused(404, "no such user")
        return web.json_response({"uuid": USER_UUID, "user_id": self.user_id})

    async def _list_threads(self, request: web.Request) -> web.Response:
        query = _allowed(request, "page_size", "cursor", "order_by", "order", "user_uuid")
        if query.get("user_uuid") != USER_UUID:
            raise _refused(404, "no such user")
        return self._page(query, [{"uuid": _uuid(place), "thread_id": name} for place, name in enumerate(self.threads)])

    async def _list_messages(self, request: web.Request) -> web.Response:
        query = _allowed(request, "page_size", "cursor", "order_by", "order")
        by_uuid = {_uuid(place): messages for place, messages in enumerate(self.threads.values())}
        if request.match_info["uuid"] not in by_uuid:
            raise _refused(404, "no such thread")
        found = list(by_uuid[request.match_info["uuid"]])
        return self._page(query, found if query.get("order", "desc") == "asc" else found[::-1])

    async def _list_edges(self, request: web.Request) -> web.Response:
        query = _allowed(request, "page_size", "cursor", "order_by", "order")
        if request.match_info["uuid"] != USER_UUID:
            raise _refused(404, "no such graph")
        if not set(await request.json()) <= {"filters"}:
            raise _refused(400, "unknown field")
        return self._page(query, self.facts)

    def _page(self, query: Mapping[str, str], items: Sequence[dict[str, Any]]) -> web.Response:
        self._count()
        size, cursor = int(query.get("page_size", 50)), query.get("cursor", "c0")
        if not 1 <= size <= _MOST or not cursor.startswith("c"):
            raise _refused(400, "page_size or cursor")
        start = int(cursor[1:])
        page: dict[str, Any] = {"items": items[start : start + size], "total_size": len(items)}
        return web.json_response(page | ({"next_cursor": f"c{start + size}"} if start + size < len(items) else {}))

    async def _threads_before(self, request: web.Request) -> web.Response:
        _allowed(request)
        self._count()
        if request.match_info["user"] != self.user_id:
            return web.json_response(None)
        return web.json_response([{"thread_id": name, "user_id": self.user_id} for name in self.threads])

    async def _messages_before(self, request: web.Request) -> web.Response:
        query = _allowed(request, "limit", "cursor", "lastn")
        self._count()
        if request.match_info["thread"] not in self.threads:
            raise _refused(404, "no such thread")
        messages = self.threads[request.match_info["thread"]]
        start = int(query.get("cursor", 0))
        part = messages[start : start + int(query["limit"])]
        return web.json_response({"messages": part, "row_count": len(part), "total_count": len(messages)})

    async def _edges_before(self, request: web.Request) -> web.Response:
        _allowed(request)
        self._count()
        asked = await request.json()
        if not set(asked) <= {"limit", "uuid_cursor"} or request.match_info["user"] != self.user_id:
            raise _refused(400, "unknown field or user")
        uuids = [fact["uuid"] for fact in self.facts]
        start = uuids.index(asked["uuid_cursor"]) + 1 if asked.get("uuid_cursor") else 0
        return web.json_response(self.facts[start : start + asked.get("limit", _MOST)])

    def _count(self) -> None:
        """Answer 429 and 500 where the test asks for it."""
        self._served += 1
        if self._served == self.busy_at:
            raise web.HTTPTooManyRequests(headers={"Retry-After": "0"})
        if self._served == self.breaks_at:
            raise web.HTTPInternalServerError


def _uuid(place: int) -> str:
    return f"5f1c0a52-0000-4000-9000-{place:012}"
