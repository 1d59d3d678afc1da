"""Metrics on a port of their own: from the start of the process to the end of its drain, and on no other port."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator

import aiohttp
import pytest
from pydantic import ValidationError

from memloop_service import ServiceSettings, create_app, metrics_served, run
from tests.fakes.asgi_server import running
from tests.fakes.ports import free_port
from tests.gateway.rig import eventually

_EXIT_S = 60.0


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def status(http: aiohttp.ClientSession, url: str) -> int:
    async with http.get(url) as answer:
        await answer.read()
        return answer.status


async def test_metrics_move_to_their_own_port_and_nothing_else_does(http: aiohttp.ClientSession) -> None:
    settings = ServiceSettings(metrics_port=free_port())
    app = create_app("test", settings=settings)
    apart = f"http://127.0.0.1:{settings.metrics_port}"
    async with metrics_served(app, settings), running(app) as url:
        async with http.get(f"{apart}/metrics") as answer:
            assert 'memloop_build_info{part="test"' in await answer.text()
        assert await status(http, f"{url}/metrics") == 404
        assert await status(http, f"{url}/livez") == 200
        assert await status(http, f"{apart}/livez") == 404
    with pytest.raises(aiohttp.ClientConnectorError):
        await status(http, f"{apart}/metrics")


async def test_without_a_port_of_their_own_they_are_beside_everything_else(http: aiohttp.ClientSession) -> None:
    settings = ServiceSettings()
    app = create_app("test", settings=settings)
    async with metrics_served(app, settings), running(app) as url:
        assert await status(http, f"{url}/metrics") == 200


async def test_a_process_serves_both_ports_until_its_end(http: aiohttp.ClientSession) -> None:
    port, metrics_port = free_port(), free_port()
    process = multiprocessing.get_context("spawn").Process(target=_served, args=(port, metrics_port))
    process.start()

    async def answers() -> bool:
        try:
            return await status(http, f"http://127.0.0.1:{port}/livez") == 200
        except aiohttp.ClientConnectorError:
            return False

    try:
        await eventually(answers)
        assert await status(http, f"http://127.0.0.1:{metrics_port}/metrics") == 200
        process.terminate()
        await asyncio.to_thread(process.join, _EXIT_S)
        assert process.exitcode in (0, -15)
    finally:
        process.kill()


async def test_a_taken_port_ends_the_start_with_a_message() -> None:
    taken = ServiceSettings(metrics_port=free_port())
    async with metrics_served(create_app("test", settings=taken), taken):
        with pytest.raises(
            SystemExit, match=f"cannot listen on 127.0.0.1:{taken.metrics_port}: Address already in use"
        ):
            async with metrics_served(create_app("test", settings=taken), taken):
                pass


def test_both_ports_must_differ() -> None:
    with pytest.raises(ValidationError, match="MEMLOOP_METRICS_PORT must differ from MEMLOOP_PORT"):
        ServiceSettings(port=7800, metrics_port=7800)


def test_an_empty_port_counts_as_unset() -> None:
    assert ServiceSettings.model_validate({"metrics_port": ""}).metrics_port is None


def _served(port: int, metrics_port: int) -> None:
    settings = ServiceSettings(port=port, metrics_port=metrics_port)
    run(create_app("test", settings=settings), settings)
