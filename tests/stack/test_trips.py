"""A request enters a bounded number of files and functions of our own, and the bound only falls."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.redis_server import RedisServer
from tests.stack.trips import ceilings, measured, within

_MOST_RUNS = 60
"""Reached only by a trip that grew."""


@pytest.fixture
def one_server() -> Iterator[RedisServer]:
    """Starts a Redis of its own: the ceilings are those of one server, whatever the other tests use."""
    server = RedisServer.start()
    yield server
    server.stop()


async def test_no_trip_enters_more_than_its_ceiling(one_server: RedisServer, tmp_path: Path) -> None:
    most = ceilings()
    counts = await measured(one_server.url, tmp_path, at_most=most, most_runs=_MOST_RUNS)
    assert set(counts) == set(most)
    higher = {name: (count, most[name]) for name, count in counts.items() if not within(count, most[name])}
    assert not higher, f"(files, functions) counted and allowed: {higher}; python -m tests.stack.trips lists all"
