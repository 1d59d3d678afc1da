"""A server of models on a real port, in the public forms: OpenAI's ``/v1/embeddings``, and ``/v1/rerank``.

It errs, stalls, changes its dimension, answers out of order or too short when a test asks for that.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.embedder import HashingEncoder
from tests.fakes.web_server import serving

KEY = "key-of-the-models"


@dataclass
class ModelEndpoint:
    """Answers as its fields say. ``embedded`` and ``ranked`` hold the bodies of the requests that it read.

    ``failures``: the next answers are these statuses. ``well``: a path that neither fails nor stalls.
    ``longest_chars``: a longer text is refused with 400. ``likes``: the word whose number in a text is its score.
    """

    url: str = ""
    dimension: int = 64
    status: int = 200
    failures: list[int] = field(default_factory=list[int])
    stalls: bool = False
    well: str = ""
    backwards: bool = False
    missing: int = 0
    extra: bool = False
    longest_chars: int = 1_000_000
    likes: str = "yes"
    embedded: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    ranked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def embeddings(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.embedded.append(body)
        if (failure := await self._failure(request)) is not None:
            return failure
        if any(len(text) > self.longest_chars for text in body["input"]):
            return _error(400, "This model's maximum context length is exceeded.")
        dimension = body.get("dimensions", self.dimension)
        vectors = HashingEncoder(dimension=dimension).encode(body["input"])
        rows = [{"object": "embedding", "index": at, "embedding": list(one)} for at, one in enumerate(vectors)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return web.json_response({"object": "list", "data": self._dealt(rows), "model": body["model"], "usage": usage})

    async def rerank(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.ranked.append(body)
        if (failure := await self._failure(request)) is not None:
            return failure
        scores = [(text.split().count(self.likes), at) for at, text in enumerate(body["documents"])]
        best = sorted(scores, key=lambda one: (-one[0], one[1]))
        best += [(1, len(best))] if self.extra else []
        return web.json_response(
            {"id": "r", "results": self._dealt([{"index": at, "relevance_score": score} for score, at in best])}
        )

    def _dealt(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = rows[: len(rows) - self.missing]
        return kept[::-1] if self.backwards else kept

    async def _failure(self, request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return _error(401, "Incorrect API key provided.")
        if request.path == self.well:
            return None
        while self.stalls:  # noqa: ASYNC110 - a test sets it
            await asyncio.sleep(0.01)
        status = self.failures.pop(0) if self.failures else self.status
        return None if status == 200 else _error(status, "The server had an error.")


@asynccontextmanager
async def model_endpoint() -> AsyncGenerator[ModelEndpoint]:
    """The endpoint while it runs; its ``url`` is the base URL that a user would set."""
    endpoint = ModelEndpoint()
    routes = [web.post("/v1/embeddings", endpoint.embeddings), web.post("/v1/rerank", endpoint.rerank)]
    async with serving(routes) as url:
        endpoint.url = f"{url}/v1"
        yield endpoint


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "error"}}, status=status)
