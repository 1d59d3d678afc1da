"""An engine that answers every chat completion with the same text after a fixed time, in a process of its own.

A request with ``"stream": true`` gets the text as ``STREAM_EVENTS`` events, each its own write: back to back, or at
least ``PACE_S`` apart if the request contains ``TAKE_YOUR_TIME``. A request with tools is the memory writer's: it gets
a call of ``ignore_memory``.
"""

import asyncio
import multiprocessing
import socket
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

import orjson
import uvloop
from aiohttp import web
from aiohttp.typedefs import Handler

REPLY = "The harbour master keeps the key of the north gate. " * 8
STREAM_EVENTS = 20
TAKE_YOUR_TIME = "Take your time."
PACE_S = 0.001
_IGNORED: dict[str, object] = {
    "content": None,
    "tool_calls": [
        {
            "id": "call_0",
            "type": "function",
            "function": {"name": "ignore_memory", "arguments": '{"reason": "Nothing lasting was said."}'},
        }
    ],
}
_START_S = 30.0


def mock_engine(*, latency_s: float) -> AbstractContextManager[str]:
    """Run a mock engine and yield its base URL; it stops with the context."""
    return served(_serve, latency_s)


@contextmanager
def served(serve: Callable[[int, float], None], latency_s: float) -> Generator[str]:
    """Run ``serve(port, latency_s)`` in a process and yield the base URL; the process ends with the context."""
    port = free_port()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(port, latency_s), daemon=True)
    process.start()
    try:
        wait_for(port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.join()


def free_port() -> int:
    """Return a free TCP port on the loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    """Wait until the port accepts connections. Raises TimeoutError."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"the mock engine did not listen within {_START_S:.0f} s")


def _serve(port: int, latency_s: float) -> None:
    body, events, decision = _whole_answer({"content": REPLY}), _streamed_answer(), _whole_answer(_IGNORED)

    async def answer(request: web.Request) -> web.StreamResponse:
        asked = await request.read()
        await asyncio.sleep(latency_s)
        if b'"tools":' in asked:
            return web.Response(body=decision, content_type="application/json")
        if not _wants_stream(asked):
            return web.Response(body=body, content_type="application/json")
        paced = TAKE_YOUR_TIME.encode() in asked
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            await response.write(event)
            if paced:
                await asyncio.sleep(PACE_S)
        return response

    serve_chat(port, answer)


def serve_chat(port: int, answer: Handler) -> None:
    """Serve chat completions by ``answer`` under the model id ``mock``, until the process ends."""

    async def models(request: web.Request) -> web.Response:
        del request
        return web.json_response({"object": "list", "data": [{"id": "mock", "object": "model"}]})

    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/chat/completions", answer)
    app.router.add_get("/v1/models", models)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None, loop=uvloop.new_event_loop())


def _wants_stream(body: bytes) -> bool:
    """Search the bytes for the stream flag, with or without a space, to avoid parsing a long body."""
    return b'"stream":true' in body or b'"stream": true' in body


def _whole_answer(said: dict[str, object]) -> bytes:
    message = {"role": "assistant", **said}
    return orjson.dumps(
        {
            "id": "mock",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "mock",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": _usage(),
        }
    )


def _streamed_answer() -> list[bytes]:
    """Return the writes: the text's pieces, then the finish, the usage and ``[DONE]`` in one."""
    size = -(-len(REPLY) // STREAM_EVENTS)
    pieces = [REPLY[start : start + size] for start in range(0, len(REPLY), size)]
    texts = [_event([{"index": 0, "delta": {"role": "assistant", "content": piece}}]) for piece in pieces]
    finish = _event([{"index": 0, "delta": {}, "finish_reason": "stop"}])
    return [*texts, finish + _event([], usage=_usage()) + b"data: [DONE]\n\n"]


def _event(choices: list[dict[str, object]], **more: object) -> bytes:
    head = {"id": "mock", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "mock"}
    return b"data: " + orjson.dumps({**head, "choices": choices, **more}) + b"\n\n"


def _usage() -> dict[str, int]:
    return {"prompt_tokens": 7000, "completion_tokens": 100, "total_tokens": 7100}
