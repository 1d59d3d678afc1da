"""Runs an ASGI app under a real uvicorn in the test's own event loop, on a free loopback port."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI


@asynccontextmanager
async def running(app: FastAPI) -> AsyncGenerator[str]:
    """The base URL of the running app; on leaving it is stopped, open streams after a second."""
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1, lifespan="on")
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
            await server.shutdown(sockets=[listener])
