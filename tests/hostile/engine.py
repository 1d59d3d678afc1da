"""A scripted engine as a process: ``python -m tests.hostile.engine``, on ``MEMLOOP_PORT``.

It answers after 5 ms. A prompt with ``STALL`` gets no answer until ``POST /release``, one with ``DRIP`` a word per
second, and one with ``GUSH`` a stream of 2 MB.
"""

import asyncio
import json
import os
from contextlib import suppress
from typing import Any, Final

from aiohttp import web

from tests.fakes.job_engine import add_memory

ANSWER_S: Final = 0.005
STALL, DRIP, GUSH = "STALL", "DRIP", "GUSH"
_DRIP_S: Final = 1.0
_DRIPS: Final = 600
_GUSHES: Final = 32
_GUSH: Final = b"word " * 13_000
_WORDS: Final = 3
_EVENT: Final = b'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'


class Engine:
    """Answers by the words of the prompt; ``released`` lets go of those that stall."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """``POST /v1/chat/completions``."""
        raw = await request.text()
        if STALL in raw:
            await self.released.wait()
        await asyncio.sleep(ANSWER_S)
        body: dict[str, Any] = json.loads(raw)
        if body.get("stream"):
            return await self._streamed(request, raw)
        if DRIP in raw:
            return await self._dripped(request)
        message = add_memory(_fact(raw)) if body.get("tools") else _text(r"\boxed{Rome}" if "boxed" in raw else "seen")
        return web.json_response(_completion(message))

    async def release(self, request: web.Request) -> web.Response:
        """``POST /release``: answer those that stall now; later ones stall again."""
        del request
        self.released.set()
        self.released = asyncio.Event()
        return web.Response()

    async def _streamed(self, request: web.Request, raw: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        released = self.released
        for word, pause_s in _words(raw):
            await response.write(_EVENT % word)
            await _pause(pause_s, released)
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _dripped(self, request: web.Request) -> web.StreamResponse:
        """White space before the JSON, a byte at a time."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        released = self.released
        for _ in range(_DRIPS):
            await response.write(b" ")
            await _pause(_DRIP_S, released)
        await response.write(json.dumps(_completion(_text("seen"))).encode())
        return response


async def _pause(pause_s: float, released: asyncio.Event) -> None:
    """Wait, but not once the engine lets go."""
    with suppress(TimeoutError):
        async with asyncio.timeout(pause_s):
            await released.wait()


def _words(raw: str) -> list[tuple[bytes, float]]:
    if DRIP in raw:
        return [(b"word ", _DRIP_S)] * _DRIPS
    return [(_GUSH, 0.0)] * _GUSHES if GUSH in raw else [(b"word ", ANSWER_S)] * _WORDS


def _text(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def _fact(raw: str) -> str:
    """The newest word of a prompt that names a fact."""
    return next((word for word in reversed(raw.replace('"', " ").split()) if word.startswith("fact-")), "fact-none")


def _completion(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}


async def _ready(request: web.Request) -> web.Response:
    del request
    return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})


def main() -> None:
    """Serve until a signal."""
    engine, app = Engine(), web.Application(client_max_size=1 << 30)
    app.router.add_post("/v1/chat/completions", engine.complete)
    app.router.add_post("/release", engine.release)
    app.router.add_get("/v1/models", _ready)
    app.router.add_get("/readyz", _ready)
    web.run_app(
        app,
        host="127.0.0.1",
        port=int(os.environ["MEMLOOP_PORT"]),
        print=None,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=0.1,
    )


if __name__ == "__main__":
    main()
