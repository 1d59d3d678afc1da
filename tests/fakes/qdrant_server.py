"""A Qdrant server without vectors, written from its public REST API: collections, aliases, indexes, and its errors."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from aiohttp import web

from memloop.wire.chat import Json
from tests.fakes.web_server import serving

Answer: TypeAlias = Callable[[], Awaitable[web.Response]]

_CONFIG: Json = {
    "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
    "optimizer_config": {
        "deleted_threshold": 0.2,
        "vacuum_min_vector_number": 1000,
        "default_segment_number": 0,
        "flush_interval_sec": 5,
    },
}


@dataclass
class QdrantStandIn:
    """Refuses everything that exists already, as a strict server may.

    ``answers_points`` answers every request about points. ``asked_together`` callers that look for something missing
    are all answered that it is missing, once all of them have asked.
    """

    version: str = "1.20.0"
    asked_together: int = 1
    answers_points: Answer | None = None
    collections: dict[str, Json] = field(default_factory=dict[str, Json])
    indexes: dict[str, Json] = field(default_factory=dict[str, Json])
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    refusals: int = 0
    versions_asked: int = 0
    alias_of_another: str | None = None
    """Another store points the alias there just before the first one does."""

    def __post_init__(self) -> None:
        self._together = asyncio.Barrier(self.asked_together)

    @asynccontextmanager
    async def running(self, port: int = 0) -> AsyncGenerator[str]:
        """The base URL, as long as it runs."""
        place = "/collections/{name}"
        routes = [
            web.get("/", self._root),
            web.get("/collections", self._names),
            web.get("/aliases", self._aliases),
            web.post("/collections/aliases", self._change_aliases),
            web.get(f"{place}/exists", self._exists),
            web.put(place, self._create),
            web.get(place, self._info),
            web.put(f"{place}/index", self._index),
            web.route("*", f"{place}/points{{rest:.*}}", self._points),
            web.post(f"{place}/facet", self._points),
        ]
        async with serving(routes, port=port) as url:
            yield url

    async def _root(self, request: web.Request) -> web.Response:
        del request
        self.versions_asked += 1
        return web.json_response({"title": "qdrant - vector search engine", "version": self.version, "commit": "0"})

    async def _names(self, request: web.Request) -> web.Response:
        del request
        return succeeded({"collections": [{"name": name} for name in self.collections]})

    async def _aliases(self, request: web.Request) -> web.Response:
        del request
        return await self._looked_up(
            {"aliases": [{"alias_name": alias, "collection_name": name} for alias, name in self.aliases.items()]},
            missing=not self.aliases,
        )

    async def _exists(self, request: web.Request) -> web.Response:
        found = request.match_info["name"] in self.collections
        return await self._looked_up({"exists": found}, missing=not found)

    async def _info(self, request: web.Request) -> web.Response:
        schema = {name: {"data_type": "keyword", "points": 0} for name in self.indexes}
        params = self.collections[request.match_info["name"]]
        body = {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "config": {**_CONFIG, "params": {"vectors": params["vectors"]}},
            "payload_schema": schema,
        }
        return await self._looked_up(body, missing=not schema)

    async def _create(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name in self.collections:
            return self._exists_already(f"Collection `{name}` already exists!")
        self.collections[name] = cast(Json, await request.json())
        return succeeded(True)

    async def _index(self, request: web.Request) -> web.Response:
        index = cast(Json, await request.json())
        name = str(index["field_name"])
        if name in self.indexes:
            return self._exists_already(f"Payload index for `{name}` already exists!")
        self.indexes[name] = index
        return succeeded({"operation_id": 1, "status": "completed"})

    async def _change_aliases(self, request: web.Request) -> web.Response:
        if self.alias_of_another is not None:
            self.aliases["memloop"], self.alias_of_another = self.alias_of_another, None
        for action in cast(list[dict[str, dict[str, str]]], (await request.json())["actions"]):
            if "delete_alias" in action:
                self.aliases.pop(action["delete_alias"]["alias_name"], None)
                continue
            made = action["create_alias"]
            if made["alias_name"] in self.aliases:
                return self._exists_already(f"Alias `{made['alias_name']}` already exists!")
            self.aliases[made["alias_name"]] = made["collection_name"]
        return succeeded(True)

    async def _points(self, request: web.Request) -> web.Response:
        await request.read()
        return await self.answers_points() if self.answers_points else succeeded({"count": 0, "points": []})

    async def _looked_up(self, result: object, *, missing: bool) -> web.Response:
        if missing:
            await self._together.wait()
        return succeeded(result)

    def _exists_already(self, description: str) -> web.Response:
        self.refusals += 1
        return failed(409, f"Wrong input: {description}")


def succeeded(result: object) -> web.Response:
    """Qdrant's envelope around a result."""
    return web.json_response({"result": result, "status": "ok", "time": 0.0})


def failed(status: int, error: str, *, retry_after: str | None = None) -> web.Response:
    """Qdrant's envelope around an error."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return web.json_response({"status": {"error": error}, "time": 0.0}, status=status, headers=headers)
