"""The nodes of a Qdrant cluster as far as snapshots of shards go, written from its public REST API.

A shard's content is one text. Each node has an address of its own on the loopback and the port of all others.
"""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import web

from tests.fakes.ports import free_port
from tests.fakes.qdrant_server import failed, succeeded
from tests.fakes.web_server import serving

_HNSW = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}
_OPTIMIZERS = {
    "deleted_threshold": 0.2,
    "vacuum_min_vector_number": 1000,
    "default_segment_number": 0,
    "flush_interval_sec": 5,
}


@dataclass
class ShardStandIn:
    """A shard: its content on each node that has a copy, and the copies that are no longer active."""

    key: str | int | None
    copies: dict[int, str]
    dead: set[int] = field(default_factory=set[int])


@dataclass
class ClusterStandIn:
    """What the nodes share. ``away`` nodes refuse everything."""

    nodes: int
    distributed: bool = True
    settings: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    shards: dict[str, dict[int, ShardStandIn]] = field(default_factory=dict[str, dict[int, ShardStandIn]])
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    snapshots: dict[tuple[int, str, int], str] = field(default_factory=dict[tuple[int, str, int], str])
    away: set[int] = field(default_factory=set[int])

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[str]:
        """The first node's URL, as long as all run."""
        async with AsyncExitStack() as stack:
            port = free_port()
            for node in range(self.nodes):
                routes = _Node(self, node).routes()
                await stack.enter_async_context(serving(routes, host=_host(node), port=port))
            yield f"http://{_host(0)}:{port}"

    def make(self, collection: str, **settings: Any) -> None:
        """Make a collection; custom sharding begins without shards."""
        self.settings[collection] = settings
        self.shards[collection] = {}
        if settings.get("sharding_method") != "custom":
            for _ in range(settings["shard_number"]):
                self.add_shard(collection, None)

    def add_shard(self, collection: str, key: str | int | None) -> None:
        """Make a shard, whose copies lie on the nodes in turn."""
        number = len(self.shards[collection])
        copies = min(self.settings[collection]["replication_factor"], self.nodes)
        self.shards[collection][number] = ShardStandIn(
            key, {(number + copy) % self.nodes: "" for copy in range(copies)}
        )

    def contents(self, collection: str) -> list[tuple[str | int | None, set[str]]]:
        """Each shard's key, and what its copies hold."""
        return [(shard.key, set(shard.copies.values())) for shard in self.shards[collection].values()]


def _host(node: int) -> str:
    return f"127.0.0.{node + 1}"


@dataclass
class _Node:
    cluster: ClusterStandIn
    number: int

    def routes(self) -> list[web.RouteDef]:
        of_shard = "/collections/{name}/shards/{shard}/snapshots"
        handlers = {
            ("GET", "/cluster"): self._status,
            ("GET", "/collections"): self._names,
            ("GET", "/aliases"): self._aliases,
            ("POST", "/collections/aliases"): self._alias,
            ("GET", "/collections/{name}"): self._info,
            ("PUT", "/collections/{name}"): self._create,
            ("PUT", "/collections/{name}/shards"): self._create_key,
            ("GET", "/collections/{name}/cluster"): self._shards,
            ("POST", of_shard): self._snapshot,
            ("POST", f"{of_shard}/upload"): self._upload,
            ("GET", f"{of_shard}/{{snapshot}}"): self._download,
            ("DELETE", f"{of_shard}/{{snapshot}}"): self._delete,
        }
        return [web.route(method, path, self._guarded(handler)) for (method, path), handler in handlers.items()]

    def _guarded(self, handler: Any) -> Any:
        async def answer(request: web.Request) -> web.StreamResponse:
            if self.number in self.cluster.away and request.transport is not None:
                request.transport.abort()
            return cast(web.StreamResponse, await handler(request))

        return answer

    async def _status(self, request: web.Request) -> web.Response:
        del request
        if not self.cluster.distributed:
            return succeeded({"status": "disabled"})
        peers = {str(node): {"uri": f"http://{_host(node)}:6335/"} for node in range(self.cluster.nodes)}
        raft = {"term": 1, "commit": 1, "pending_operations": 0, "role": "Leader", "is_voter": True}
        working = {"consensus_thread_status": "working", "last_update": "2026-11-23T00:00:00Z"}
        shown = {"status": "enabled", "peer_id": self.number, "peers": peers, "raft_info": raft}
        return succeeded(shown | {"consensus_thread_status": working, "message_send_failures": {}})

    async def _names(self, request: web.Request) -> web.Response:
        del request
        return succeeded({"collections": [{"name": name} for name in self.cluster.settings]})

    async def _aliases(self, request: web.Request) -> web.Response:
        del request
        shown = [{"alias_name": alias, "collection_name": name} for alias, name in self.cluster.aliases.items()]
        return succeeded({"aliases": shown})

    async def _alias(self, request: web.Request) -> web.Response:
        for action in (await request.json())["actions"]:
            made = action["create_alias"]
            self.cluster.aliases[made["alias_name"]] = made["collection_name"]
        return succeeded(True)

    async def _info(self, request: web.Request) -> web.Response:
        settings = self.cluster.settings[request.match_info["name"]]
        params = {name: value for name, value in settings.items() if name not in {"hnsw_config", "optimizers_config"}}
        config = {"params": params, "hnsw_config": _HNSW, "optimizer_config": _OPTIMIZERS}
        shown: dict[str, Any] = {"status": "green", "optimizer_status": "ok", "segments_count": 1}
        return succeeded(shown | {"payload_schema": {}, "config": config})

    async def _create(self, request: web.Request) -> web.Response:
        self.cluster.make(request.match_info["name"], **(await request.json()))
        return succeeded(True)

    async def _create_key(self, request: web.Request) -> web.Response:
        self.cluster.add_shard(request.match_info["name"], (await request.json())["shard_key"])
        return succeeded(True)

    async def _shards(self, request: web.Request) -> web.Response:
        local: list[dict[str, Any]] = []
        remote: list[dict[str, Any]] = []
        for number, shard in self.cluster.shards[request.match_info["name"]].items():
            for node, content in shard.copies.items():
                shown = {"shard_id": number, "state": "Dead" if node in shard.dead else "Active"}
                shown |= {} if shard.key is None else {"shard_key": shard.key}
                if node == self.number:
                    local.append(shown | {"points_count": len(content)})
                else:
                    remote.append(shown | {"peer_id": node})
        counted = {"peer_id": self.number, "shard_count": len(self.cluster.shards[request.match_info["name"]])}
        return succeeded(counted | {"local_shards": local, "remote_shards": remote, "shard_transfers": []})

    def _copies(self, request: web.Request) -> dict[int, str]:
        """The copies of the shard that a request names. Refused by a node without one."""
        copies = self.cluster.shards[request.match_info["name"]][int(request.match_info["shard"])].copies
        if self.number not in copies:
            raise web.HTTPBadRequest(text="Wrong input: shard is not local")
        return copies

    def _place(self, request: web.Request) -> tuple[int, str, int]:
        return self.number, request.match_info["name"], int(request.match_info["shard"])

    async def _snapshot(self, request: web.Request) -> web.Response:
        self.cluster.snapshots[self._place(request)] = self._copies(request)[self.number]
        return succeeded({"name": "made", "creation_time": "2026-11-23T00:00:00", "size": 1})

    async def _download(self, request: web.Request) -> web.Response:
        return web.Response(body=self.cluster.snapshots[self._place(request)].encode())

    async def _delete(self, request: web.Request) -> web.Response:
        del self.cluster.snapshots[self._place(request)]
        return succeeded(True)

    async def _upload(self, request: web.Request) -> web.Response:
        raw = cast(web.FileField, (await request.post())["snapshot"]).file.read()
        if request.query["checksum"] != hashlib.sha256(raw).hexdigest() or request.query["priority"] != "snapshot":
            return failed(400, "Wrong input: Snapshot checksum mismatch")
        self._copies(request)[self.number] = raw.decode()
        return succeeded(True)
