"""An engine that answers every chat completion with the same text after a fixed time, in a process of its own."""

import asyncio
import multiprocessing
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager

import orjson
from aiohttp import web

REPLY = "The harbour master keeps the key of the north gate. " * 8
_START_S = 30.0


@contextmanager
def mock_engine(*, latency_s: float) -> Generator[str]:
    """The base URL of a running mock engine; it ends with the context."""
    port = _free_port()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(port, latency_s), daemon=True)
    process.start()
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.join()


def _serve(port: int, latency_s: float) -> None:
    body = orjson.dumps(
        {
            "id": "mock",
            "object": "chat.completion",
            "model": "mock",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": REPLY}}],
            "usage": {"prompt_tokens": 7000, "completion_tokens": 100, "total_tokens": 7100},
        }
    )

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(latency_s)
        return web.Response(body=body, content_type="application/json")

    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/chat/completions", answer)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"the mock engine did not listen within {_START_S:.0f} s")
