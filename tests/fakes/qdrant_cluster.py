"""A Qdrant cluster whose nodes die and hang: each node has an address of its own, each shard has copies on some nodes.

Written from Qdrant's public documentation of replication: a write goes to every copy, and is refused if fewer than the
write consistency took it, which leaves it on those that did. A copy that missed a write which was not refused counts as
dead until its node is back and it is copied anew. A read is answered by one live copy, or by what all copies agree on.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import web
from qdrant_client import QdrantClient, models

from tests.fakes.ports import free_port
from tests.fakes.qdrant_server import QdrantStandIn, succeeded
from tests.fakes.qdrant_shards import POINTS, CopiesMissing, Shards
from tests.fakes.web_server import serving

_ANSWERING: ContextVar[int] = ContextVar("answering", default=0)
_AGREED: ContextVar[bool] = ContextVar("agreed", default=False)
_WRITES = ("", "/delete", "/payload/delete")
_EVERYTHING = 2**31


@dataclass
class Nodes:
    """``away`` nodes take nothing. ``stopped`` ones take requests and answer none until they go on."""

    count: int
    away: set[int] = field(default_factory=set[int])
    stopped: dict[int, asyncio.Event] = field(default_factory=dict[int, asyncio.Event])

    def reach(self, node: int) -> bool:
        """Whether other nodes reach it."""
        return node not in self.away and node not in self.stopped


@dataclass
class Copies:
    """One shard on several nodes. ``missed``: the nodes whose copy is dead."""

    nodes: Nodes
    consistency: int
    made: Callable[[], QdrantClient]
    by_node: dict[int, QdrantClient]
    missed: set[int] = field(default_factory=set[int])

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        if operation in {"upsert", "delete", "delete_payload"}:
            return lambda *args, **kwargs: self._write(operation, *args, **kwargs)  # pyright: ignore
        return lambda *args, **kwargs: self._read(operation, *args, **kwargs)  # pyright: ignore

    @property
    def active(self) -> list[int]:
        """The nodes with a live copy."""
        return [node for node in self.by_node if node not in self.missed]

    def _write(self, operation: str, *args: Any, **kwargs: Any) -> None:
        reached = [node for node in self.active if self.nodes.reach(node)]
        for node in reached:
            getattr(self.by_node[node], operation)(*args, **kwargs)
        if len(reached) < min(self.consistency, len(self.by_node)):
            raise CopiesMissing("Failed to apply operation to at least one `Active` replica. Please retry.")
        self.missed |= set(self.active) - set(reached)

    def _read(self, operation: str, *args: Any, **kwargs: Any) -> Any:
        reached = [node for node in self.active if self.nodes.reach(node)]
        if not reached or (_AGREED.get() and len(reached) < len(self.by_node)):
            raise CopiesMissing("The replica set for shard 0 does not have enough active replicas")
        if _AGREED.get() and operation == "scroll":
            return self._agreed(args, kwargs)
        first = _ANSWERING.get() if _ANSWERING.get() in reached else reached[0]
        return getattr(self.by_node[first], operation)(*args, **kwargs)

    def _agreed(self, args: Any, kwargs: Any) -> Any:
        pages = [client.scroll(*args, **kwargs) for client in self.by_node.values()]
        first, *others = [{str(record.id): record for record in page} for page, _ in pages]
        alike = [one for key, one in first.items() if all(other.get(key) == one for other in others)]
        return alike, pages[0][1]

    def recover(self) -> None:
        """Copy live copies to the dead ones that can be reached."""
        sources = [node for node in self.active if self.nodes.reach(node)]
        for node in [one for one in self.missed if self.nodes.reach(one) and sources]:
            records, _ = self.by_node[sources[0]].scroll(POINTS, limit=_EVERYTHING, with_vectors=True)
            self.by_node[node] = self.made()
            if records:
                self.by_node[node].upsert(POINTS, [_struct(record) for record in records])
            self.missed.discard(node)


def _struct(record: models.Record) -> models.PointStruct:
    return models.PointStruct(id=record.id, vector=cast(Any, record.vector), payload=record.payload)


@dataclass
class CopiedShards(Shards):
    """Shards whose copies lie on the nodes in turn."""

    nodes: Nodes = field(default_factory=lambda: Nodes(1))

    def made(self) -> QdrantClient:
        """A new, empty shard with its copies."""
        copies = min(self.params.replication_factor or 1, self.nodes.count)
        places = sorted((len(self.shards) + copy) % self.nodes.count for copy in range(copies))
        by_node = {node: super(CopiedShards, self).made() for node in places}
        made = Copies(self.nodes, self.params.write_consistency_factor or 1, super().made, by_node)
        return cast(QdrantClient, made)

    @property
    def copies(self) -> list[Copies]:
        """Of every shard."""
        return [cast(Copies, shard) for shard in self.shards.values()]

    def contents(self) -> list[list[dict[str, models.Record]]]:
        """The points of each copy of each shard."""
        return [[_records(client) for client in one.by_node.values()] for one in self.copies]


def _records(client: QdrantClient) -> dict[str, models.Record]:
    return {str(record.id): record for record in client.scroll(POINTS, limit=_EVERYTHING, with_vectors=True)[0]}


@dataclass
class QdrantCluster(QdrantStandIn):
    """Its nodes have addresses of their own. ``gives_up_s``: how long a write waits for a node that does not answer."""

    nodes: int = 3
    gives_up_s: float = 0.3
    urls: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state = Nodes(self.nodes)

    @asynccontextmanager
    async def running_nodes(self) -> AsyncGenerator[tuple[str, ...]]:
        """The URL of each node, as long as they run."""
        async with AsyncExitStack() as stack:
            port = free_port()
            for node in range(self.nodes):
                routes = [web.route(one.method, one.path, self._at(node, one.handler)) for one in self.routes()]
                await stack.enter_async_context(serving(routes, host=f"127.0.0.{node + 1}", port=port))
            self.urls = tuple(f"http://127.0.0.{node + 1}:{port}" for node in range(self.nodes))
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
        """Those of one node, and where the copies lie."""
        return [web.get("/collections/{name}/cluster", self._copies), *super().routes()]

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
            _ANSWERING.set(node)
            _AGREED.set(request.query.get("consistency") == "all")
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
        here = _ANSWERING.get()
        local: list[dict[str, Any]] = []
        remote: list[dict[str, Any]] = []
        for number, (key, shard) in enumerate(self.collections[request.match_info["name"]].shards.items()):
            copies = cast(Copies, shard)
            for node, client in copies.by_node.items():
                shown: dict[str, Any] = {"shard_id": number, "shard_key": key}
                shown["state"] = "Dead" if node in copies.missed else "Active"
                if node == here:
                    local.append(shown | {"points_count": client.count(POINTS).count})
                else:
                    remote.append(shown | {"peer_id": node})
        counted = {"peer_id": here, "shard_count": len(self.collections[request.match_info["name"]].shards)}
        return succeeded(counted | {"local_shards": local, "remote_shards": remote, "shard_transfers": []})
