"""Fixtures that all tests share: one real Redis per session, empty at the start of every test that asks for it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.fakes.redis_server import RedisServer

if TYPE_CHECKING:
    from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs]

    from tests.side_by_side import ByFile


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "ByFile":
    """Only where the tests run side by side is xdist needed."""
    from tests.side_by_side import ByFile

    return ByFile(config, log)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A real Redis process for the whole session; tests take :func:`redis_url` unless they restart it."""
    server = RedisServer.start()
    yield server
    server.stop()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The URL of an empty Redis."""
    redis_server.flush()
    return redis_server.url
