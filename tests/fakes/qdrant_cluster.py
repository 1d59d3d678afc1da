"""A Qdrant cluster whose nodes die and hang. Each node has an address of its own, each shard copies on some nodes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from aiohttp import web
from qdrant_client import models

from tests.fakes.ports import free_port
from tests.fakes.qdrant_cluster_snapshots import Snapshots
from tests.fakes.qdrant_copies import AGREED, ANSWERING, CopiedShards, Copies, Nodes
from tests.fakes.qdrant_server import QdrantStandIn, succeeded
from tests.fakes.qdrant_shards import POINTS, Shards
from tests.fakes.web_server import serving

_WRITES = ("", "/delete", "/payload/delete")


@dataclass
class QdrantCluster(QdrantStandIn):
    """Its nodes have addresses of their own. ``gives_up_s``: how long a write waits for a node that does not answer."""

    nodes: int = 3
    gives_up_s: float = 0.3
    urls: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state = Nodes(self.nodes)
        self.snapshots = Snapshots(self.collections, ANSWERING.get)

    @asynccontextmanager
    async def running_nodes(self) -> AsyncGenerator[tuple[str, ...]]:
        """The URL of each node, as long as they run."""
        async with AsyncExitStack() as stack:
            port = free_port()
            for node in range(self.nodes):
                routes = [web.route(one.method, one.path, self._at(node, one.handler)) for one in self.routes()]
                await stack.enter_async_context(serving(routes, host=self._host(node), port=port))
            self.urls = tuple(f"http://{self._host(node)}:{port}" for node in range(self.nodes))
            yield self.urls
            for node in list(self.state.stopped):
                self.go_on(node)

    def kill(self, node: int) -> None:
        """The node takes no requests, and its copies no writes."""
        self.state.away.add(node)

    def start(self, node: int) -> None:
        """The node is back; what it missed is copied to it."""
        self.state.away.discard(node)
        self._recover()

    def stop(self, node: int) -> None:
        """The node hangs: it takes requests and answers none."""
        self.state.stopped[node] = asyncio.Event()

    def go_on(self, node: int) -> None:
        """The node answers again."""
        self.state.stopped.pop(node).set()
        self._recover()

    def copies(self, name: str) -> list[list[dict[str, models.Record]]]:
        """The points of each copy of each shard."""
        return cast(CopiedShards, self.collections[name]).contents()

    def routes(self) -> list[web.RouteDef]:
        """What a node answers, and where the copies lie."""
        return [web.get("/collections/{name}/cluster", self._copies), *self.snapshots.routes(), *super().routes()]

    def _host(self, node: int) -> str:
        return f"127.0.0.{node + 1}"

    def _recover(self) -> None:
        for shards in self.collections.values():
            for copies in cast(CopiedShards, shards).copies:
                copies.recover()

    def _shards(self, params: models.CreateCollection, custom: bool) -> Shards:
        return CopiedShards(params, custom, nodes=self.state)

    def _at(self, node: int, handler: Any) -> Any:
        async def answer(request: web.Request) -> web.StreamResponse:
            if node in self.state.away and request.transport is not None:
                request.transport.abort()
                raise ConnectionResetError
            if stopped := self.state.stopped.get(node):
                await stopped.wait()
            ANSWERING.set(node)
            AGREED.set(request.query.get("consistency") == "all")
            return cast(web.StreamResponse, await handler(request))

        return answer

    async def _points(self, request: web.Request) -> web.Response:
        if request.match_info["operation"] in _WRITES:
            waiting = [asyncio.create_task(stopped.wait()) for stopped in self.state.stopped.values()]
            if waiting:
                _, late = await asyncio.wait(waiting, timeout=self.gives_up_s)
                for task in late:
                    task.cancel()
        return await super()._points(request)

    async def _copies(self, request: web.Request) -> web.Response:
        here, shards = ANSWERING.get(), self.collections[request.match_info["name"]]
        local: list[dict[str, Any]] = []
        remote: list[dict[str, Any]] = []
        for number, (key, shard) in enumerate(shards.shards.items()):
            copies = cast(Copies, shard)
            for node, client in copies.by_node.items():
                shown: dict[str, Any] = {"shard_id": number} | ({"shard_key": key} if shards.custom else {})
                shown["state"] = "Dead" if node in copies.missed else "Active"
                if node == here:
                    local.append(shown | {"points_count": client.count(POINTS).count})
                else:
                    remote.append(shown | {"peer_id": node})
        counted = {"peer_id": here, "shard_count": len(shards.shards)}
        return succeeded(counted | {"local_shards": local, "remote_shards": remote, "shard_transfers": []})
