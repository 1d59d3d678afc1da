"""An inference launcher without an engine: a profile, a tokenizer and a window."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from memloop.profiles import profile_files
from tests.fakes.web_server import serving
from tests.fakes.word_tokenizer import word_tokenizer


@dataclass
class Launcher:
    """An inference launcher that answers 503 ``refusals`` times first."""

    refusals: int = 0
    window_tokens: int = 32_768
    asked: list[str] = field(default_factory=list[str])

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if self.refusals:
            self.refusals -= 1
            return web.Response(status=503)
        model = {"id": "served", "engine_url": "http://127.0.0.1:1/v1", "max_model_len": self.window_tokens}
        bodies: Mapping[str, str] = {
            "/v1/model": json.dumps(model),
            "/v1/profile": json.dumps({"ref": "tiny", "files": profile_files("tiny")}),
            "/v1/tokenizer": word_tokenizer(),
        }
        return web.Response(text=bodies[request.path])


@asynccontextmanager
async def launched(launcher: Launcher, *, port: int = 0) -> AsyncGenerator[str]:
    """The launcher while it runs; its base URL."""
    async with serving([web.get("/v1/{name}", launcher.answer)], port=port) as url:
        yield url
