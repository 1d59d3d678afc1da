"""The simplest hand-written proxy: FastAPI, pydantic and aiohttp, on uvloop and httptools.

A baseline, not a target: without keys, limits, memory, metrics or error handling, it costs what any Python gateway
costs on this machine. Run: ``python -m benchmarks.gateway.plain PORT ENGINE_URL``.
"""

import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, JsonValue

_JSON = {"Content-Type": "application/json"}


class Chat(BaseModel):
    """The fields of every request; any others are kept."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[dict[str, JsonValue]]
    stream: bool = False


def application(engine_url: str) -> FastAPI:
    """Build the app: one route, one connection pool."""

    @asynccontextmanager
    async def pooled(app: FastAPI) -> AsyncGenerator[None]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as app.state.engine:
            yield

    app = FastAPI(lifespan=pooled)

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:  # pyright: ignore[reportUnusedFunction]
        body = await request.body()
        asked = Chat.model_validate_json(body)
        session: aiohttp.ClientSession = request.app.state.engine
        answer = await session.post(f"{engine_url}/chat/completions", data=body, headers=_JSON)
        if asked.stream:
            return StreamingResponse(_passed_on(answer), media_type="text/event-stream")
        async with answer:
            return Response(await answer.read(), status_code=answer.status, media_type="application/json")

    @app.get("/readyz")
    async def ready() -> Response:  # pyright: ignore[reportUnusedFunction]
        return Response()

    return app


async def _passed_on(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async with answer:
        async for piece in answer.content.iter_any():
            yield piece


def main() -> None:
    """Serve until a signal."""
    port, engine_url = sys.argv[1:]
    app = application(engine_url)
    uvicorn.run(app, host="127.0.0.1", port=int(port), loop="uvloop", http="httptools", access_log=False)


if __name__ == "__main__":
    main()
