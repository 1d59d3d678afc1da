"""Connections to Qdrant have an age: a client is replaced while it is used, over REST and over gRPC."""

import asyncio
from dataclasses import dataclass, field

import pytest
from qdrant_client import AsyncQdrantClient

from memory_store.vectors.filters import AllOf
from memory_store.vectors.qdrant_server import QdrantServer
from memory_store.vectors.schema import CollectionSpec
from memory_store.vectors.server_clients import RenewedClient
from tests.fakes.processes import PATIENCE_S
from tests.fakes.qdrant_grpc import serving_points
from tests.fakes.qdrant_server import QdrantStandIn

_AGE_S = 600.0


@dataclass
class Clients:
    """Makes clients; ``now`` is the time, ``made`` and ``closed`` count them."""

    url: str
    grpc_port: int | None
    now: float = 0.0
    made: list["_Client"] = field(default_factory=list["_Client"])

    def make(self) -> AsyncQdrantClient:
        client = _Client(
            url=self.url,
            grpc_port=self.grpc_port or 0,
            prefer_grpc=self.grpc_port is not None,
            timeout=60,
            check_compatibility=False,
        )
        self.made.append(client)
        return client

    @property
    def closed(self) -> list[bool]:
        return [client.closed for client in self.made]


class _Client(AsyncQdrantClient):
    closed = False

    async def close(self, grpc_grace: float | None = None, **kwargs: object) -> None:
        self.closed = True
        await super().close(grpc_grace, **kwargs)


@pytest.mark.parametrize("grpc", [False, True], ids=["rest", "grpc"])
async def test_an_old_client_is_replaced_and_closed_with_the_store(grpc: bool) -> None:
    server = QdrantStandIn()
    async with server.running() as url, serving_points(server.collections) as port:
        clients = Clients(url, port if grpc else None)
        renewed = RenewedClient(clients.make, age_s=_AGE_S, clock=lambda: clients.now)
        admin = AsyncQdrantClient(url=url, timeout=60, check_compatibility=False)
        vectors = QdrantServer(admin, points=renewed)
        await vectors.open(CollectionSpec("m", 4))
        for clients.now in (0.0, _AGE_S, _AGE_S + 1, 2 * _AGE_S + 1):
            assert await vectors.count(where=AllOf(())) == 0
        assert clients.closed == [False, False], "requests of the first may be under way"
        await vectors.close()

    assert clients.closed == [True, True]


async def test_a_replaced_client_is_closed_after_its_grace() -> None:
    clients = Clients("http://127.0.0.1:9", None)
    renewed = RenewedClient(clients.make, age_s=_AGE_S, grace_s=0.0, clock=lambda: clients.now)
    first = renewed.now()
    clients.now = _AGE_S + 1
    assert renewed.now() is not first
    await _until_closed(clients)
    await renewed.close()

    assert clients.closed == [True, True]


async def _until_closed(clients: Clients) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not clients.made[0].closed:  # noqa: ASYNC110 - a client does not signal
            await asyncio.sleep(0)
