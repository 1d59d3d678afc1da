"""Fixtures that all tests share: one real Redis per session, empty at the start of every test that asks for it.

With ``--redis-cluster`` it is a real cluster of six processes. With ``--qdrant`` the store's fixtures keep their
vectors on a Qdrant cluster instead of Edge. Properties are checked on the same examples each time, however busy the
machine is.
"""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fakes.redis_cluster import RedisClusterServers
from tests.fakes.redis_server import RedisServer
from tests.steady import draw_steadily

if TYPE_CHECKING:
    from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs]

    from tests.side_by_side import ByFile

_SLOW_S = 1800
_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 2 * 2**30

draw_steadily()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "ByFile":
    """Only where the tests run side by side is xdist needed."""
    from tests.side_by_side import ByFile

    return ByFile(config, log)


def pytest_configure() -> None:
    """A shell starts what it puts in the background with Ctrl-C ignored, and so would every process of the tests."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects the tests without garbage collection, which took a seventh of the time and freed little."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives a slow test half an hour unless it names a limit: the general one is too short on a busy machine."""
    for item in items:
        if item.get_closest_marker("slow") and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_SLOW_S))


def pytest_collection_finish() -> None:
    """Frees the garbage collector, as our processes do, of all that is loaded by now: it was a tenth of the time."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--redis-cluster", action="store_true", help="let the tests' Redis be a cluster of six processes")
    parser.addoption("--qdrant", action="store_true", help="let the stores' vectors be on a Qdrant cluster")


@pytest.fixture(scope="session")
def quick_disk() -> Iterator[Path]:
    """A folder in memory where there is room: a store waits for the disk hundreds of times a test, tests need not."""
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES
    runs_programs = roomy and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    with tempfile.TemporaryDirectory(prefix="memloop-", dir=_MEMORY if runs_programs else None) as folder:
        yield Path(folder)


@pytest.fixture
def tmp_path(quick_disk: Path) -> Iterator[Path]:
    """pytest's fixture of this name, on the quick disk and gone with its test."""
    folder = Path(tempfile.mkdtemp(dir=quick_disk))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def redis_server(request: pytest.FixtureRequest) -> Iterator[RedisServer | RedisClusterServers]:
    """A real Redis for the whole session; tests take :func:`redis_url` unless they restart it."""
    server = (RedisClusterServers if request.config.getoption("--redis-cluster") else RedisServer).start()
    yield server
    server.stop()


@pytest.fixture
def redis_url(redis_server: RedisServer | RedisClusterServers) -> str:
    """The URL of an empty Redis."""
    redis_server.flush()
    return redis_server.url
