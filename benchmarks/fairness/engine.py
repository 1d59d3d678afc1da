"""An engine, its own process, that answers as memory writer, reader or chat; each call takes a fixed time."""

import asyncio
from contextlib import AbstractContextManager

import orjson
import uvloop
from aiohttp import web

from benchmarks.mock_engine import served

_FACT: dict[str, object] = {"key": "tea", "memory_type": "UserMemory", "value": "The user likes tea.", "tags": []}
_KEEP = {"name": "add_memory", "arguments": orjson.dumps({"memory_list": [_FACT], "summary": "tea"}).decode()}
_WRITER = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": _KEEP}]}
_READER = {"role": "assistant", "content": r"\boxed{In Rome.}"}
_USAGE = {"prompt_tokens": 500, "completion_tokens": 50, "total_tokens": 550}


def writing_engine(*, latency_s: float) -> AbstractContextManager[str]:
    """Run the engine and yield its base URL; it stops with the context."""
    return served(_serve, latency_s)


def _serve(port: int, latency_s: float) -> None:
    async def answer(request: web.Request) -> web.Response:
        asked = await request.read()
        await asyncio.sleep(latency_s)
        return web.Response(body=_reply(asked), content_type="application/json")

    async def models(request: web.Request) -> web.Response:
        del request
        return web.json_response({"object": "list", "data": [{"id": "mock", "object": "model"}]})

    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/chat/completions", answer)
    app.router.add_get("/v1/models", models)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None, loop=uvloop.new_event_loop())


def _reply(asked: bytes) -> bytes:
    """Return a decision to a request with tools, and an answer to any other."""
    writes = b'"tools"' in asked
    choice = {
        "index": 0,
        "message": _WRITER if writes else _READER,
        "finish_reason": "tool_calls" if writes else "stop",
    }
    head = {"id": "mock", "object": "chat.completion", "created": 1_700_000_000, "model": "mock"}
    return orjson.dumps({**head, "choices": [choice], "usage": _USAGE})
