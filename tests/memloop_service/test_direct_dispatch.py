"""Direct routes are reached without the router, and behave as through it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from fastapi import APIRouter, FastAPI, Request, Response
from httpx import ASGITransport, AsyncClient
from starlette.middleware import Middleware
from starlette.types import Message, Receive, Scope, Send

from memloop.wire.errors import NotFound
from memloop_service.direct_route import DirectDispatch, DirectRoute
from memloop_service.errors import handle


def app_of(*routers: APIRouter) -> FastAPI:
    app = FastAPI(redirect_slashes=False)
    for router in routers:
        app.router.routes.extend(router.routes)
    app.user_middleware.append(Middleware(DirectDispatch, app=app))
    app.add_exception_handler(NotFound, handle)
    return app


def answering(path: str, answer: Callable[[Request], Awaitable[Response]]) -> APIRouter:
    router = APIRouter(route_class=DirectRoute)
    router.post(path, response_model=None)(answer)
    return router


async def post(app: FastAPI, path: str, method: str = "POST") -> tuple[int, str]:
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
        answer = await client.request(method, path)
    return answer.status_code, answer.text


async def hello(request: Request) -> Response:
    return Response(f"direct {request.scope['route'].path}")


async def lost(request: Request) -> Response:
    raise NotFound("no such thing")


async def test_a_direct_route_answers_and_names_itself() -> None:
    assert await post(app_of(answering("/chat", hello)), "/chat") == (200, "direct /chat")


async def test_another_method_is_refused_as_by_the_router() -> None:
    status, _ = await post(app_of(answering("/chat", hello)), "/chat", method="GET")
    assert status == 405


async def test_its_errors_go_to_the_handlers_of_the_app() -> None:
    status, text = await post(app_of(answering("/chat", lost)), "/chat")
    assert (status, "no such thing" in text) == (404, True)


async def test_a_route_declared_before_it_comes_first() -> None:
    async def any_name(request: Request) -> Response:
        return Response("declared first")

    first = APIRouter()
    first.post("/{name}", response_model=None)(any_name)
    assert await post(app_of(first, answering("/chat", hello)), "/chat") == (200, "declared first")


async def test_an_error_amid_the_answer_is_not_answered_again() -> None:
    class Breaking(Response):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            raise NotFound("amid the answer")

    async def breaking(request: Request) -> Response:
        return Breaking()

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": False}

    scope: Scope = {"type": "http", "method": "POST", "path": "/chat", "headers": [], "query_string": b""}
    with pytest.raises(NotFound):
        await app_of(answering("/chat", breaking))(scope, receive, send)
    assert [message["type"] for message in sent] == ["http.response.start"]
