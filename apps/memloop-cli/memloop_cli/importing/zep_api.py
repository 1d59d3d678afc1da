"""A user's threads and facts from Zep's own API, page by page.

Sources: Zep's API reference, version 4 ("List threads", "List thread messages", "List edges") and the version before,
whose addresses begin with ``/api/v2``; the paths are those of ``zep-cloud`` 4.0 and 3.30.
"""

from collections.abc import AsyncGenerator
from typing import Final

from memloop.wire.chat import Json
from memloop_cli.errors import CliError
from memloop_cli.importing.entries import text_of
from memloop_cli.importing.source_api import MOST_PAGES, SourceApi, part, source_api
from memloop_cli.importing.streaming import Record

_PAGE: Final = 100
_BEFORE: Final = "/api/v2"


async def zep_records(url: str, key: str, user_id: str) -> AsyncGenerator[Record]:
    """Yield each thread of a user with its messages, then its facts. Raises CliError as ``SourceApi`` does."""
    number = 0
    async with source_api("Zep", url, {"Authorization": f"Api-Key {key}"}) as api:
        reader = _Before(api) if api.address.path.rstrip("/").endswith(_BEFORE) else _Current(api)
        async for found in reader.records(user_id):
            number += 1
            yield Record(number, {"user_id": user_id, **found})


class _Current:
    """Version 4: users, threads and graphs are named by UUIDs, lists have cursors."""

    def __init__(self, api: SourceApi) -> None:
        self._api = api

    async def records(self, user_id: str) -> AsyncGenerator[Json]:
        """Yield threads and pages of facts."""
        api = self._api
        uuid = text_of(api.fields(await api.post("users/lookup", {"user_id": user_id})), "uuid")
        if not uuid:
            raise CliError(f"Zep at {api.address} names no UUID of the user")
        async for threads in self._pages("GET", "threads", {"user_uuid": uuid}):
            for thread in map(api.fields, threads):
                messages = await self._messages(thread)
                yield {"thread_id": text_of(thread, "thread_id", "uuid"), "messages": [*messages]}
        async for edges in self._pages("POST", f"graphs/{part(uuid)}/edges/list", {}):
            yield {"facts": [*map(api.fields, edges)]}

    async def _messages(self, thread: Json) -> list[Json]:
        path = f"threads/{part(text_of(thread, 'uuid'))}/messages"
        pages = self._pages("GET", path, {"order_by": "created_at", "order": "asc"})
        return [self._api.fields(message) async for page in pages for message in page]

    async def _pages(self, method: str, path: str, params: dict[str, str]) -> AsyncGenerator[list[object]]:
        asked = {**params, "page_size": str(_PAGE)}
        for _ in range(MOST_PAGES):
            answer = await (self._api.get(path, asked) if method == "GET" else self._api.post(path, {}, asked))
            found = self._api.fields(answer)
            if items := self._api.rows(found.get("items"), "items"):
                yield items
            if not (cursor := text_of(found, "next_cursor")):
                return
            asked["cursor"] = cursor


class _Before:
    """Version 3, whose addresses begin with ``/api/v2``: everything is named by the developer's own ids."""

    def __init__(self, api: SourceApi) -> None:
        self._api = api

    async def records(self, user_id: str) -> AsyncGenerator[Json]:
        """Yield threads and pages of facts."""
        threads = self._api.rows(await self._api.get(f"users/{part(user_id)}/threads"), "threads")
        for thread in map(self._api.fields, threads):
            thread_id = text_of(thread, "thread_id")
            yield {"thread_id": thread_id, "messages": [*await self._messages(thread_id)]}
        after = ""
        for _ in range(MOST_PAGES):
            edges = await self._edges(user_id, after)
            if not edges or after == (after := text_of(edges[-1], "uuid")):
                return
            yield {"facts": [*edges]}

    async def _messages(self, thread_id: str) -> list[Json]:
        found: list[Json] = []
        for _ in range(MOST_PAGES):
            params = {"limit": str(_PAGE), "cursor": str(len(found))}
            answer = self._api.fields(await self._api.get(f"threads/{part(thread_id)}/messages", params))
            messages = self._api.rows(answer.get("messages"), "messages")
            found += map(self._api.fields, messages)
            if not messages:
                break
        return found

    async def _edges(self, user_id: str, after: str) -> list[Json]:
        body: Json = {"limit": _PAGE, **({"uuid_cursor": after} if after else {})}
        answer = await self._api.post(f"graph/edge/user/{part(user_id)}", body)
        return list(map(self._api.fields, self._api.rows(answer, "edges")))
