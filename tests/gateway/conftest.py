"""The whole gateway API under a real uvicorn, between a fake engine, a fake store and a real Redis."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from gateway.settings import GatewaySettings
from tests.fakes.given_settings import given_settings
from tests.fakes.recall_store import FakeStore, fake_store
from tests.fakes.redis_cluster import RedisClusterServers
from tests.fakes.redis_server import RedisServer
from tests.fakes.streaming_engine import FakeEngine, fake_engine
from tests.gateway.redis_view import connected
from tests.gateway.running import Gateway, running_gateway
from tests.gateway.tenants import World, two_tenants
from tests.gateway.two_models import ENVIRONMENT, TwoModels, two_models


@pytest.fixture
async def engine() -> AsyncGenerator[FakeEngine]:
    """An engine that a test tells what to do."""
    async with fake_engine() as running:
        yield running


@pytest.fixture
async def store() -> AsyncGenerator[FakeStore]:
    """A store that finds what a test puts into it."""
    async with fake_store() as running:
        yield running


@pytest.fixture
def settings(engine: FakeEngine, store: FakeStore, redis_url: str) -> GatewaySettings:
    """Settings that point at the fakes; without keys."""
    return given_settings(
        GatewaySettings,
        {
            "engine_url": engine.url,
            "store_url": store.url,
            "redis_url": redis_url,
            "redis_timeout_s": 30.0,
            "recall_timeout_s": 30.0,
            "enqueue_timeout_s": 30.0,
            "startup_wait_s": 0.0,
        },
    )


@pytest.fixture
async def gateway(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A running gateway."""
    async with running_gateway(settings) as running:
        yield running


@pytest.fixture
async def redis(redis_url: str) -> AsyncGenerator[Redis]:
    """A client of the test's own Redis."""
    async with connected(redis_url) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World]:
    """Two tenants, on a Redis of the module's own."""
    redis = RedisServer.start()
    try:
        async with two_tenants(redis.url, tmp_path_factory.mktemp("world")) as world:
            yield world
    finally:
        redis.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def owned(world: World) -> dict[str, bytes]:
    """All that A owns, before a test."""
    return await world.what_a_owns()


@pytest.fixture
def engine_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of a writer and a reader, in the environment."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
async def both(redis_url: str, tmp_path: Path, engine_keys: None) -> AsyncGenerator[TwoModels]:
    """A gateway with a writer and a reader."""
    async with two_models(redis_url, tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisClusterServers]:
    """A Redis Cluster of real servers."""
    servers = RedisClusterServers.start()
    yield servers
    servers.stop()


@pytest.fixture
async def cluster_redis(cluster: RedisClusterServers) -> AsyncGenerator[Redis]:
    """A client of that cluster, which is empty."""
    cluster.flush()
    async with connected(cluster.url) as client:
        yield client
