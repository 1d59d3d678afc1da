"""A process that is told to stop takes leave: readiness first, then the connections, then the listening."""

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest
import uvicorn
from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from memloop.chores import alongside
from memloop_service import ServiceSettings, create_app
from memloop_service.serving import Drain, drained
from tests.fakes.processes import PATIENCE_S
from tests.gateway.rig import eventually

DRAIN_S = 0.4


@dataclass
class Running:
    """A server, where it is, and the end of it."""

    server: uvicorn.Server
    drain: Drain | None
    url: str
    over: "asyncio.Task[None]"
    go_on: asyncio.Event

    def terminate(self) -> None:
        if self.drain is not None:
            self.drain.terminate(self.server)
        else:
            self.server.handle_exit(signal.SIGTERM, None)


@asynccontextmanager
async def running(*, drain_s: float = DRAIN_S, grace_s: float = PATIENCE_S) -> AsyncGenerator[Running]:
    go_on, router = asyncio.Event(), APIRouter()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"first"
        await go_on.wait()
        yield b"last"

    @router.get("/stream")
    async def stream() -> StreamingResponse:
        return StreamingResponse(pieces())

    _ = stream
    app = create_app("test", settings=ServiceSettings(), routers=[router])
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=round(grace_s))
    server, drain = uvicorn.Server(config), app.state.drain
    draining = [drained(server, drain, drain_s=drain_s, grace_s=grace_s)] if drain_s else []
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        task = asyncio.create_task(server._serve([listener]))  # pyright: ignore[reportPrivateUsage] - no signal handlers
        await eventually(lambda: server.started)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            async with alongside(*draining):
                yield Running(server, drain if drain_s else None, url, task, go_on)
        finally:
            go_on.set()
            server.handle_exit(signal.SIGINT, None)
            await task


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_readiness_goes_first_and_requests_are_still_served(http: aiohttp.ClientSession) -> None:
    async with running(drain_s=PATIENCE_S) as it:
        async with http.get(it.url + "/livez") as before:
            assert "Connection" not in before.headers
        it.terminate()
        async with http.get(it.url + "/readyz") as ready, http.get(it.url + "/livez") as live:
            assert (ready.status, (await ready.json())["error"]["code"]) == (503, "draining")
            assert (live.status, live.headers["Connection"]) == (200, "close")


async def test_it_listens_no_longer_once_it_has_drained(http: aiohttp.ClientSession) -> None:
    async with running() as it:
        it.terminate()
        await asyncio.wait_for(it.over, PATIENCE_S)
        with pytest.raises(aiohttp.ClientConnectorError):
            await http.get(it.url + "/livez")


async def test_the_client_of_a_stream_may_use_its_connection_once_more(http: aiohttp.ClientSession) -> None:
    async with running() as it, http.get(it.url + "/stream") as stream:
        it.terminate()
        await asyncio.sleep(2 * DRAIN_S)
        it.go_on.set()
        assert await stream.read() == b"firstlast"
        async with http.get(it.url + "/livez") as after:
            assert after.headers["Connection"] == "close"


async def test_a_stream_that_does_not_end_is_cut_when_the_grace_is_over(http: aiohttp.ClientSession) -> None:
    async with running(drain_s=0.1, grace_s=1.0) as it, http.get(it.url + "/stream") as stream:
        it.terminate()
        await asyncio.wait_for(it.over, PATIENCE_S)
        with pytest.raises(aiohttp.ClientError):
            await stream.read()


async def test_without_a_time_to_drain_it_stops_at_once(http: aiohttp.ClientSession) -> None:
    async with running(drain_s=0.0) as it:
        it.terminate()
        await asyncio.wait_for(it.over, PATIENCE_S)
        with pytest.raises(aiohttp.ClientConnectorError):
            await http.get(it.url + "/livez")


async def test_a_second_signal_ends_the_drain(http: aiohttp.ClientSession) -> None:
    async with running(drain_s=10 * PATIENCE_S) as it:
        it.terminate()
        it.terminate()
        await asyncio.wait_for(it.over, PATIENCE_S)
