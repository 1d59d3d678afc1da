"""The whole gateway API under a real uvicorn, between a fake engine, a fake store and a real Redis."""

from collections.abc import AsyncGenerator, Iterator

import pytest
from redis.asyncio import Redis

from gateway.settings import GatewaySettings
from tests.fakes.given_settings import given_settings
from tests.fakes.recall_store import FakeStore, fake_store
from tests.fakes.redis_cluster import RedisClusterServers
from tests.fakes.streaming_engine import FakeEngine, fake_engine
from tests.gateway.redis_view import connected
from tests.gateway.running import Gateway, running_gateway


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
