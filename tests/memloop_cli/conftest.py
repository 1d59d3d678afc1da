"""A command line against a fake gateway that runs in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from typer.testing import CliRunner, Result

from memloop_cli.main import app
from tests.fakes.gateway_server import FakeGateway
from tests.fakes.web_server import serving

Memloop = Callable[..., Result]


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    fake = FakeGateway()
    started, loop = threading.Event(), asyncio.new_event_loop()
    done = asyncio.Event()

    async def serve() -> None:
        async with serving(fake.routes()) as url:
            fake.url = url
            started.set()
            await done.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait()
    yield fake
    loop.call_soon_threadsafe(done.set)
    thread.join()
    loop.close()


@pytest.fixture
def memloop(gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Memloop:
    monkeypatch.setenv("MEMLOOP_URL", gateway.url)
    monkeypatch.setenv("MEMLOOP_HOME", str(tmp_path_factory.mktemp("home")))

    def run(*arguments: str, typed: str | None = None) -> Result:
        return CliRunner().invoke(app, list[str](arguments), input=typed)

    return run


def lines(result: Result) -> Sequence[str]:
    return [line.strip() for line in result.output.splitlines() if line.strip()]
