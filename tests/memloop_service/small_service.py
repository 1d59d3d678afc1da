"""A small service on the shared edge, and requests to it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
from fastapi import APIRouter, Depends, FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import StreamingResponse

from memloop.wire.base import Wire, request_id
from memloop.wire.errors import Conflict, RateLimited, Unauthenticated, Unavailable
from memloop.wire.long_read import LongReadRequest
from memloop_service import ERRORS, ServiceSettings, create_app
from memloop_service.incoming import refuse_half_characters

SETTINGS = ServiceSettings(max_body_bytes=1000)
FAULTS: dict[str, Exception] = {
    "conflict": Conflict("stale", param="version", code="stale"),
    "limited": RateLimited("slow down", retry_after_s=1.2),
    "stranger": Unauthenticated("no key"),
    "bug": RuntimeError("secret detail"),
    "group": ExceptionGroup("tasks", [Unavailable("the engine cannot be reached", retry_after_s=1)]),
    "groups": ExceptionGroup("tasks", [ValueError("a"), ValueError("b")]),
    "teapot": HTTPException(418, "a teapot"),
}


class Body(Wire):
    name: str
    count: int = 1


def routes() -> APIRouter:
    router = APIRouter(dependencies=[Depends(refuse_half_characters)], responses=ERRORS)

    @router.get("/fail/{name}")
    async def fail(name: str) -> None:
        raise FAULTS[name]

    @router.post("/fail/loudly")
    async def fail_loudly() -> None:
        raise FAULTS["bug"]

    @router.post("/things")
    async def things(body: Body) -> Body:
        return body

    @router.put("/things")
    async def replace(body: Body) -> Body:
        return body

    @router.post("/raw")
    async def raw(request: Request) -> int:
        return len(await request.body())

    @router.post("/reads")
    async def reads(body: LongReadRequest) -> str:
        return body.question or ""

    @router.get("/stream")
    async def stream() -> StreamingResponse:
        async def parts() -> AsyncGenerator[bytes]:
            yield request_id.get().encode()

        return StreamingResponse(parts())

    _ = fail, fail_loudly, things, replace, raw, reads, stream
    return router


@asynccontextmanager
async def client_of(app: FastAPI | None = None) -> AsyncGenerator[httpx.AsyncClient]:
    app = app or create_app("test", settings=SETTINGS, routers=[routes()])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        yield client


async def get(path: str, app: FastAPI | None = None, **headers: str) -> httpx.Response:
    async with client_of(app) as client:
        return await client.get(path, headers=headers)


async def post(path: str, content: bytes | AsyncGenerator[bytes], **headers: str) -> httpx.Response:
    async with client_of() as client:
        return await client.post(path, content=content, headers={"content-type": "application/json", **headers})


def problem(response: httpx.Response) -> dict[str, str | None]:
    """The error of a response, which holds nothing else."""
    body = response.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["message", "type", "param", "code"]
    return body["error"]
