#!/usr/bin/env python3
"""A scripted engine as a process of its own: ``replica_process.py HOST PORT LOG [SLOTS] [SECONDS]``.

It serves so many requests at a time, each for so long, and streams if asked to. SIGUSR1 makes ``/health`` answer 503:
it drains, and goes on serving. ``LOG`` gets a line for each request that begins (``+``, its time and the read that the
prompt names) and one for each that ends well (``-``); they are there even if the process is killed.
"""

import asyncio
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

from aiohttp import web

EVENTS = 10
_READ = re.compile(rb"read-\d+")


class Engine:
    def __init__(self, log: Path, slots: int, seconds: float) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._slots = asyncio.Semaphore(slots)
        self._seconds = seconds
        self.draining = False

    async def health(self, _: web.Request) -> web.Response:
        return web.Response(status=503 if self.draining else 200)

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "vllm"}]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        read = _READ.search(raw)
        self._note(f"+ {time.time():.4f} {read[0].decode() if read else '-'}")
        async with self._slots:
            answer = await (self._streamed(request) if b'"stream":true' in raw else self._whole(raw))
        self._note(f"- {time.time():.4f}")
        return answer

    async def _whole(self, raw: bytes) -> web.Response:
        await asyncio.sleep(self._seconds)
        message = {"role": "assistant", "content": r"\boxed{Rome}" if b"boxed" in raw else "seen"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice]})

    async def _streamed(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(EVENTS):
            delta = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "word "}}]}
            await response.write(f"data: {json.dumps(delta)}\n\n".encode())
            await asyncio.sleep(self._seconds / EVENTS)
        await response.write(b"data: [DONE]\n\n")
        return response

    def _note(self, line: str) -> None:
        os.write(self._log, f"{line}\n".encode())


async def main() -> None:
    host, port, log, *rest = sys.argv[1:]
    slots, seconds = (int(rest[0]), float(rest[1])) if rest else (1000, 0.2)
    engine = Engine(Path(log), slots, seconds)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: setattr(engine, "draining", True))
    app = web.Application(client_max_size=1 << 26)
    app.add_routes(
        [
            web.get("/health", engine.health),
            web.get("/v1/models", engine.models),
            web.post("/v1/chat/completions", engine.chat),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, int(port)).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
