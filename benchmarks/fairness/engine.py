"""An engine, its own process, that answers as memory writer, reader or chat; each call takes a fixed time."""

import asyncio
from contextlib import AbstractContextManager

import orjson
from aiohttp import web

from benchmarks.mock_engine import serve_chat, served

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

    serve_chat(port, answer)


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
