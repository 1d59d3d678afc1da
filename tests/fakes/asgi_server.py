"""Runs an ASGI app under a real uvicorn in the test's own event loop, on a free loopback port."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from memloop_service import ServiceSettings, serving
from memloop_service.connections import Refusals

_STREAMS_END_S = 1.0
_SETTINGS = ServiceSettings()


@asynccontextmanager
async def running(app: FastAPI) -> AsyncGenerator[str]:
    """The base URL of the running app; on leaving it is stopped, open streams after a second."""
    config = serving(app, _SETTINGS, refusals=Refusals(CollectorRegistry()), lifespan="on")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:  # named, else asyncio leaves Nagle on: 40 ms an answer
        listener.bind(("127.0.0.1", 0))
        await server.startup(sockets=[listener])
        if server.should_exit:
            raise RuntimeError("the app did not start")
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            await _stop(server)


async def _stop(server: uvicorn.Server) -> None:
    """What ``uvicorn.Server.shutdown`` does, without its 0.1 s of rest, of which a suite has thousands."""
    state = server.server_state
    for listening in server.servers:
        listening.close()
    for connection in list(state.connections):
        connection.shutdown()
    with suppress(TimeoutError):
        async with asyncio.timeout(_STREAMS_END_S):
            while state.connections or state.tasks:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.005)
    for task in state.tasks:
        task.cancel()
    await server.lifespan.shutdown()
