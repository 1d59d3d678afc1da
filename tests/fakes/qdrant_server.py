"""A Qdrant server, written from its public REST API: collections, shard keys, aliases, indexes, points, its errors.

Points are ranked by qdrant-client's local mode, one for each shard.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from aiohttp import web
from pydantic import TypeAdapter
from qdrant_client import models

from memloop.wire.chat import Json
from tests.fakes.qdrant_shards import CopiesMissing, Refused, Shards
from tests.fakes.web_server import serving

_JSON: TypeAdapter[object] = TypeAdapter(object)

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
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


_STUMBLES = 0.2
_HALF_DONE = (
    "Service internal error: Failed to apply operation to at least one `Active` replica. "
    "Consistency of this update is not guaranteed. Please retry."
)
_STUMBLING = (
    (500, _HALF_DONE),
    (404, "Not found: Collection `memloop_m_4` doesn't exist!"),
    (408, "Timeout: Operation timed out"),
    (503, "Service unavailable"),
)


@dataclass
class QdrantStandIn:
    """Refuses everything that exists already, as a strict server may.

    ``nodes``: of a server in distributed mode; 0 of one that is not, which refuses shard keys. ``answers_points``
    answers every request about points. ``asked_together`` callers that look for something missing
    are all answered that it is missing, once all of them have asked.
    """

    version: str = "1.20.0"
    nodes: int = 0
    asked_together: int = 1
    answers_points: Answer | None = None
    collections: dict[str, Shards] = field(default_factory=dict[str, Shards])
    indexes: dict[str, dict[str, Json]] = field(default_factory=dict[str, dict[str, Json]])
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    refusals: int = 0
    versions_asked: int = 0
    alias_of_another: str | None = None
    """Another store points the alias there just before the first one does."""
    stumbles: random.Random | None = None
    """Decides which steps of a set-up fail as on a cluster that is being set up; a failed one may have been done."""
    stumbled: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self._together = asyncio.Barrier(self.asked_together)

    @asynccontextmanager
    async def running(self, port: int = 0) -> AsyncGenerator[str]:
        """The base URL, as long as it runs."""
        async with serving(self.routes(), port=port) as url:
            yield url

    def routes(self) -> list[web.RouteDef]:
        """Everything that it answers."""
        place = "/collections/{name}"
        steps = [
            web.get("/cluster", self._cluster),
            web.get("/collections", self._names),
            web.get("/aliases", self._aliases),
            web.post("/collections/aliases", self._change_aliases),
            web.get(f"{place}/exists", self._exists),
            web.put(place, self._create),
            web.get(place, self._info),
            web.get(f"{place}/shards", self._shard_keys),
            web.put(f"{place}/shards", self._create_shard_key),
            web.put(f"{place}/index", self._index),
        ]
        return [
            web.get("/", self._root),
            *(web.route(step.method, step.path, self._stumbling(step)) for step in steps),
            web.delete(place, self._drop),
            web.route("*", f"{place}/points{{operation:.*}}", self._points),
            web.post(f"{place}/{{operation:facet}}", self._points),
        ]

    def _stumbling(self, step: web.RouteDef) -> Handler:
        """The step's handler, which may fail before it does anything or after it has done all."""
        handler, name = cast(Handler, step.handler), f"{step.method} {step.path}"

        async def answer(request: web.Request) -> web.StreamResponse:
            if self.stumbles is None or self.stumbles.random() > _STUMBLES:
                return await handler(request)
            self.stumbled[name] += 1
            if self.stumbles.random() < 0.5:
                await handler(request)
            status, error = self.stumbles.choice(_STUMBLING)
            return failed(status, error)

        return answer

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
        name = request.match_info["name"]
        params = self.collections[name].params
        schema = {field: {"data_type": "keyword", "points": 0} for field in self.indexes[name]}
        copies = {"replication_factor", "write_consistency_factor"}
        shown = {"vectors", "sparse_vectors", "shard_number", "sharding_method", *copies}
        body = {
            "status": "green",
            "optimizer_status": "ok",
            "segments_count": 1,
            "config": {**_CONFIG, "params": params.model_dump(mode="json", include=shown), "metadata": params.metadata},
            "payload_schema": schema,
        }
        return await self._looked_up(body, missing=not schema)

    async def _create(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name in self.collections:
            return self._exists_already(f"Collection `{name}` already exists!")
        params = models.CreateCollection.model_validate_json(await request.read())
        custom = params.sharding_method == models.ShardingMethod.CUSTOM
        if custom and not self.nodes:
            return failed(400, "Wrong input: Distributed mode disabled")
        self.collections[name], self.indexes[name] = self._shards(params, custom), {}
        for number in range(0 if custom else params.shard_number or max(1, self.nodes)):
            self.collections[name].add(number)
        return succeeded(True)

    def _shards(self, params: models.CreateCollection, custom: bool) -> Shards:
        return Shards(params, custom)

    async def _drop(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self.indexes.pop(name, None)
        self.aliases = {alias: named for alias, named in self.aliases.items() if named != name}
        return succeeded(self.collections.pop(name, None) is not None)

    async def _cluster(self, request: web.Request) -> web.Response:
        del request
        if not self.nodes:
            return succeeded({"status": "disabled"})
        peers = {str(number): {"uri": f"http://{self._host(number)}:6335/"} for number in range(self.nodes)}
        raft = {"term": 1, "commit": 1, "pending_operations": 0, "leader": 0, "role": "Leader", "is_voter": True}
        thread = {"consensus_thread_status": "working", "last_update": "2026-01-01T00:00:00Z"}
        state = {"raft_info": raft, "consensus_thread_status": thread, "message_send_failures": {}}
        return succeeded({"status": "enabled", "peer_id": 0, "peers": peers, **state})

    def _host(self, node: int) -> str:
        return f"node-{node}"

    async def _shard_keys(self, request: web.Request) -> web.Response:
        keys = self.collections[request.match_info["name"]].shards
        return await self._looked_up({"shard_keys": [{"key": key} for key in keys]}, missing=not keys)

    async def _create_shard_key(self, request: web.Request) -> web.Response:
        collection = self.collections[request.match_info["name"]]
        if not collection.custom:
            return failed(400, "Wrong input: Shard Key cannot be created with Auto sharding method")
        try:
            collection.add(models.CreateShardingKey.model_validate_json(await request.read()).shard_key)
        except Refused as refused:
            self.refusals += 1
            return failed(400, f"Bad request: {refused}")
        return succeeded(True)

    async def _index(self, request: web.Request) -> web.Response:
        index = cast(Json, await request.json())
        name, made = str(index["field_name"]), self.indexes[request.match_info["name"]]
        if name in made:
            return self._exists_already(f"Payload index for `{name}` already exists!")
        made[name] = index
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
        if self.answers_points:
            await request.read()
            return await self.answers_points()
        name = request.match_info["name"]
        shards = self.collections.get(self.aliases.get(name, name))
        if shards is None:
            return failed(404, f"Not found: Collection `{name}` doesn't exist!")
        try:
            return succeeded(await shards.answer(request.match_info["operation"], request))
        except Refused as refused:
            return failed(400, f"Wrong input: {refused}")
        except CopiesMissing as missing:
            return failed(500, f"Service internal error: {missing}")

    async def _looked_up(self, result: object, *, missing: bool) -> web.Response:
        if missing:
            await self._together.wait()
        return succeeded(result)

    def _exists_already(self, description: str) -> web.Response:
        self.refusals += 1
        return failed(409, f"Wrong input: {description}")


def succeeded(result: object) -> web.Response:
    """Qdrant's envelope around a result."""
    return web.json_response({"result": _JSON.dump_python(result, mode="json"), "status": "ok", "time": 0.0})


def failed(status: int, error: str, *, retry_after: str | None = None) -> web.Response:
    """Qdrant's envelope around an error."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return web.json_response({"status": {"error": error}, "time": 0.0}, status=status, headers=headers)
