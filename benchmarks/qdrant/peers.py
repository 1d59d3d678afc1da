"""The vector stores that are compared, each filled with the same memories."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from qdrant_client import AsyncQdrantClient

from benchmarks.memory.corpus import Rows
from benchmarks.memory.loading import points
from memory_store.vectors.port import Collection
from memory_store.vectors.qdrant_edge import QdrantEdge
from memory_store.vectors.qdrant_server import QdrantServer, ServerCollection, ServerCollections
from memory_store.vectors.schema import CollectionSpec
from memory_store.vectors.server_layout import Layout
from memory_store.vectors.server_setup import ONE_NODE

TENANT = "bench"
USERS = 10
DIMENSION = 384
_SPEC = CollectionSpec("bench", DIMENSION)
_STEP = 500


@dataclass(frozen=True, slots=True)
class Peer:
    """A collection that is full."""

    name: str
    collection: Collection


@asynccontextmanager
async def peers(folder: Path, count: int) -> AsyncGenerator[Sequence[Peer]]:
    """Edge; and a cluster over REST, over gRPC, and over REST on all shards, if there is one."""
    edge = QdrantEdge(folder, flush_s=3600.0)
    await edge.open(_SPEC)
    rows = _rows(count)
    await _fill(edge, rows)
    there = [Peer("edge", edge)]
    nodes = os.environ.get("QDRANT_NODES", "").split(",")
    if not nodes[0]:
        yield there
    else:
        async with _cluster(nodes[0], rows) as servers:
            yield [*there, *servers]
    await edge.close()


@asynccontextmanager
async def _cluster(url: str, rows: Rows) -> AsyncGenerator[Sequence[Peer]]:
    await _clear(url)
    rest = QdrantServer(_client(url), ONE_NODE)
    grpc = QdrantServer(_client(url), ONE_NODE, points=_client(url, grpc=True))
    await rest.open(_SPEC)
    await grpc.open(_SPEC)
    await _fill(rest, rows)
    every_shard = _client(url)
    yield [
        Peer("rest", rest),
        Peer("grpc", grpc),
        Peer("rest_all_shards", ServerCollection(every_shard, rest.name, Layout())),
    ]
    for one in (rest, grpc, every_shard):
        await one.close()
    await _clear(url)


def _client(url: str, *, grpc: bool = False) -> AsyncQdrantClient:
    port = int(os.environ.get("QDRANT_GRPC_PORT", "6334"))
    key = os.environ.get("QDRANT_API_KEY")
    return AsyncQdrantClient(
        url=url, grpc_port=port, prefer_grpc=grpc, api_key=key, timeout=60, check_compatibility=False
    )


async def _clear(url: str) -> None:
    collections = ServerCollections(_client(url))
    for name in await collections.names():
        await collections.drop(name)
    await collections.close()


async def _fill(collection: Collection, rows: Rows) -> None:
    for start in range(0, len(rows), _STEP):
        await collection.upsert(points(range(start, min(start + _STEP, len(rows))), rows, tenant=TENANT, users=USERS))


def _rows(count: int) -> Rows:
    """Random directions: what a vector means does not change its cost."""
    drawn = np.random.default_rng(seed=1).standard_normal((count, DIMENSION), dtype=np.float32)
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)
