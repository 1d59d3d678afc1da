"""An OpenAI-shaped engine on a real port that answers by script, can hang, and counts what runs in it."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiohttp import web

from tests.fakes.web_server import serving

Body: TypeAlias = dict[str, Any]
Reply: TypeAlias = str | Body | int
"""A text, a whole assistant message, or an error status."""


def tool_call(name: str, **arguments: object) -> Body:
    """An assistant message with one native tool call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": function}]}


def add_memory(*values: str) -> Body:
    """MemReader's decision to keep these."""
    drafts: list[Body] = [
        {"key": value[:20], "memory_type": "UserMemory", "value": value, "tags": []} for value in values
    ]
    return tool_call("add_memory", memory_list=drafts, summary="kept")


def listed(*values: str) -> str:
    """The same decision as JSON in a text, which a writer may give in every form."""
    return json.dumps({"memory list": [{"key": value[:20], "value": value} for value in values], "summary": "kept"})


def cut(text: str) -> Body:
    """A reply that hits its token limit."""
    return {"role": "assistant", "content": text, "finish_reason": "length"}


@dataclass
class EngineServer:
    """``answer`` makes the reply to a request; call number ``hang_at`` (from 1) waits until ``let_go`` is set.

    A reply takes a random time of up to ``latency_s``.
    """

    answer: Callable[[Body], Reply]
    hang_at: int | None = None
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[Body] = field(default_factory=list[Body])
    active: int = 0
    url: str = ""
    latency_s: float = 0.0

    async def complete(self, request: web.Request) -> web.Response:
        body: Body = await request.json()
        self.calls.append(body)
        self.active += 1
        try:
            if len(self.calls) == self.hang_at:
                self.hanging.set()
                await self.let_go.wait()
            await asyncio.sleep(random.uniform(0, self.latency_s))
            return _response(self.answer(body), body)
        finally:
            self.active -= 1

    async def models(self, request: web.Request) -> web.Response:
        del request
        return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})


def last_text(body: Body) -> str:
    """The last message of a request."""
    return str(body["messages"][-1]["content"])


@asynccontextmanager
async def engine_server(answer: Callable[[Body], Reply], *, hang_at: int | None = None) -> AsyncGenerator[EngineServer]:
    """A running engine; a request whose client leaves is cancelled, as vLLM does it."""
    engine = EngineServer(answer, hang_at=hang_at)
    routes = [web.post("/v1/chat/completions", engine.complete), web.get("/v1/models", engine.models)]
    async with serving(routes, max_body_bytes=1 << 30) as url:
        engine.url = f"{url}/v1"
        try:
            yield engine
        finally:
            engine.let_go.set()


def _response(reply: Reply, asked: Body) -> web.Response:
    if isinstance(reply, int):
        error = {"message": f"scripted {reply}", "type": "invalid_request_error", "param": None, "code": None}
        return web.json_response({"error": error}, status=reply)
    message: Body = {"role": "assistant", "content": reply} if isinstance(reply, str) else dict(reply)
    limit = message.pop("finish_reason", None)
    head = {"id": "x", "created": 0, "model": asked["model"]}
    if asked.get("stream") is True:
        chunk = {
            **head,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": message, "finish_reason": "stop"}],
        }
        return web.Response(text=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")
    reason = limit or ("tool_calls" if message.get("tool_calls") else "stop")
    choice = {"index": 0, "message": message, "finish_reason": reason}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return web.json_response({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
