"""A public chat endpoint on a real port: it refuses as its ``Spec`` says, and else answers as the loops want."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web

from tests.fakes.job_engine import add_memory, tool_call
from tests.fakes.recorded_answers import Recorded
from tests.fakes.strict_shapes import Body, Refused
from tests.fakes.strict_specs import WINDOW, Spec
from tests.fakes.web_server import serving

TOO_LONG, LIMITED = "please be too long", "please be too many"
MEMORY = "Ann has a red boat."
RETRY_AFTER_S = 7


@dataclass
class StrictEndpoint:
    """A running one. ``asked`` are all bodies, ``refusals`` the bodies that a rule refused with why."""

    spec: Spec
    url: str = ""
    asked: list[Body] = field(default_factory=list[Body])
    refusals: list[str] = field(default_factory=list[str])

    async def complete(self, request: web.Request) -> web.StreamResponse:
        if (refused := self._at_the_door(request)) is not None:
            return _error(refused)
        body = cast(Body, await request.json())
        self.asked.append(body)
        if (refused := self._refused(body)) is not None:
            self.refusals.append(json.dumps(refused.body))
            return _error(refused)
        return _answer(body, self._message(body), recorded=self.spec.recorded)

    async def models(self, request: web.Request) -> web.StreamResponse:
        if (refused := self._at_the_door(request)) is not None:
            return _error(refused)
        if self.spec.recorded is not None:
            return web.json_response(self.spec.recorded.models(self.spec.model, WINDOW))
        row = {"id": self.spec.model, "object": "model"} | ({"owned_by": self.spec.owner} if self.spec.owner else {})
        return web.json_response({"object": "list", "data": [row]})

    def _at_the_door(self, request: web.Request) -> Refused | None:
        if any(request.headers.get(name) != value for name, value in self.spec.headers.items()):
            return self.spec.denied
        if any(request.query.get(name) != value for name, value in self.spec.query.items()):
            return self.spec.missing
        return None

    def _refused(self, body: Body) -> Refused | None:
        said = str(body["messages"])
        if LIMITED in said:
            limited = self.spec.limited
            return Refused(limited.status, limited.body, {"Retry-After": str(RETRY_AFTER_S)})
        unknown = [] if self.spec.fields is None else [name for name in body if name not in self.spec.fields]
        if unknown:
            return self.spec.unknown(unknown)
        broken = (rule(body) for rule in self.spec.rules)
        return next((refused for refused in broken if refused is not None), self._of_length(said))

    def _of_length(self, said: str) -> Refused | None:
        return self.spec.too_long if TOO_LONG in said else None

    def _message(self, body: Body) -> Body:
        """A search, then a memory, where tools are offered; else a text that any of the loops can read."""
        if not body.get("tools"):
            return {"role": "assistant", "content": _text(body)}
        searched = any(message["role"] == "tool" for message in body["messages"])
        message = add_memory(MEMORY) if searched else tool_call("search_memory", query="boat")
        if self.spec.signs_calls:
            message["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "sig"}}
        return message


def _text(body: Body) -> str:
    draft: Body = {"key": "boat", "memory_type": "UserMemory", "value": MEMORY, "tags": []}
    if '{"query": "..."}' in str(body["messages"][-1]["content"]):
        return '{"query": ""}'
    if "JSON" in str(body["messages"]):
        return json.dumps({"memory list": [draft], "memory_list": [draft], "summary": "kept"})
    return "Ann has a red boat. \\boxed{red}"


@asynccontextmanager
async def strict_endpoint(spec: Spec, *, port: int = 0) -> AsyncGenerator[StrictEndpoint]:
    """The endpoint while it runs; its ``url`` is the base URL that a user would set."""
    endpoint = StrictEndpoint(spec)

    def probe(answer: Body) -> web.RouteDef:
        async def handle(_: web.Request) -> web.StreamResponse:
            return web.json_response(answer)

        return web.get("/", handle)

    routes = [
        web.post(f"{spec.base}/chat/completions", endpoint.complete),
        web.get(f"{spec.base}/models", endpoint.models),
        *(web.get(path, probe(answer).handler) for path, answer in spec.probes.items()),
    ]
    async with serving(routes, port=port) as url:
        query = "&".join(f"{name}={value}" for name, value in spec.query.items())
        endpoint.url = f"{url}{spec.base}" + (f"?{query}" if query else "")
        yield endpoint


def _error(refused: Refused) -> web.Response:
    return web.json_response(refused.body, status=refused.status, headers=refused.headers)


def _answer(body: Body, message: Body, *, recorded: Recorded | None) -> web.Response:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    if recorded is not None:
        return recorded.answer(body, message, reason, usage)
    if body.get("stream"):
        return _streamed(message, reason, usage)
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return web.json_response({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})


def _streamed(message: Body, reason: str, usage: Body) -> web.Response:
    chunks: list[Body] = [
        {"choices": [{"index": 0, "delta": message, "finish_reason": reason}]},
        {"choices": [], "usage": usage},
    ]
    events = [f"data: {json.dumps({'object': 'chat.completion.chunk', **chunk})}\n\n" for chunk in chunks]
    return web.Response(text="".join(events) + "data: [DONE]\n\n", content_type="text/event-stream")
