"""A chat completions server that follows a script for each model id and keeps every request."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson
from aiohttp import web

from benchmarks.parity.items import Reply
from memloop.wire.chat import Json

_MOST_BYTES = 8 << 20
_AFTER_THE_SCRIPT = Reply("the end")


@dataclass(frozen=True, slots=True)
class Request:
    """One request, and how many times in a row it came."""

    body: Json
    times: int = 1


@dataclass
class ScriptedModel:
    """Replies by model id, in order. A request that repeats the one before gets the same reply again."""

    scripts: Mapping[str, Sequence[Reply]]
    requests: dict[str, list[Request]] = field(default_factory=dict[str, list[Request]])

    def reply(self, body: Json) -> Reply:
        """Keep the request and return its reply."""
        model = str(body.get("model"))
        asked = self.requests.setdefault(model, [])
        if asked and asked[-1].body == body:
            asked[-1] = Request(body, asked[-1].times + 1)
        else:
            asked.append(Request(body))
        script = self.scripts.get(model, ())
        return script[len(asked) - 1] if len(asked) <= len(script) else _AFTER_THE_SCRIPT

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[int]:
        """Serve on a free loopback port, and yield it."""
        app = web.Application(client_max_size=_MOST_BYTES)
        app.router.add_post("/v1/chat/completions", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield int(runner.addresses[0][1])
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        reply = self.reply(orjson.loads(await request.read()))
        message = {"role": "assistant", "content": reply.text}
        choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "scripted", "object": "chat.completion", "created": 0, "model": "scripted"}
        return web.json_response(body | {"choices": [choice], "usage": usage})
