"""The copies of a shard on the nodes of a Qdrant cluster, written from its public documentation of replication.

A write goes to every copy, and is refused if fewer than the write consistency took it, which leaves it on those that
did. A copy that missed a write which was not refused counts as dead until its node is back and it is copied anew. A
read is answered by one live copy, or by what all copies agree on.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

from qdrant_client import QdrantClient, models

from tests.fakes.qdrant_shards import POINTS, CopiesMissing, Shards

ANSWERING: ContextVar[int] = ContextVar("answering", default=0)
"""The node that answers the request."""
AGREED: ContextVar[bool] = ContextVar("agreed", default=False)
"""Whether the request wants what all copies agree on."""
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
        if not reached or (AGREED.get() and len(reached) < len(self.by_node)):
            raise CopiesMissing("The replica set for shard 0 does not have enough active replicas")
        if AGREED.get() and operation == "scroll":
            return self._agreed(args, kwargs)
        first = ANSWERING.get() if ANSWERING.get() in reached else reached[0]
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
            source = records_of(self.by_node[sources[0]])
            self.by_node[node] = filled(self.made(), list(source.values()))
            self.missed.discard(node)


def records_of(client: QdrantClient) -> dict[str, models.Record]:
    """All points of one copy."""
    return {str(record.id): record for record in client.scroll(POINTS, limit=_EVERYTHING, with_vectors=True)[0]}


def filled(client: QdrantClient, records: Sequence[models.Record]) -> QdrantClient:
    """An empty copy with these points."""
    points = [models.PointStruct(id=one.id, vector=cast(Any, one.vector), payload=one.payload) for one in records]
    if points:
        client.upsert(POINTS, points)
    return client


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
        return [[records_of(client) for client in one.by_node.values()] for one in self.copies]
