"""Routes that run without FastAPI's resolver do what they declare, and cannot declare what they would not do."""

from collections.abc import AsyncIterator
from typing import Annotated

import pytest
from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.testclient import TestClient

from memloop_service.direct_route import DirectRoute
from memloop_service.errors import handle


def app_of(router: APIRouter) -> FastAPI:
    app = FastAPI()
    app.include_router(router)
    return app


def test_dependencies_run_in_order_and_are_held_until_the_last_byte() -> None:
    steps: list[str] = []

    async def first(request: Request) -> None:
        steps.append(f"first {request.method}")

    async def held(request: Request) -> AsyncIterator[str]:
        del request
        steps.append("held")
        yield "value"
        steps.append("released")

    class Answer(Response):
        async def __call__(self, *asgi: object) -> None:
            await super().__call__(*asgi)  # pyright: ignore[reportArgumentType] - handed on as they came
            steps.append("sent")

    router = APIRouter(route_class=DirectRoute, dependencies=[Depends(first)])

    @router.post("/x")
    async def endpoint(request: Request, value: Annotated[str, Depends(held)]) -> Response:
        steps.append(f"{request.url.path} {value}")
        return Answer(value)

    assert TestClient(app_of(router)).post("/x").text == "value"
    assert steps == ["first POST", "held", "/x value", "sent", "released"]
    assert endpoint


def test_a_failure_reaches_who_holds_and_who_handles() -> None:
    seen: list[BaseException] = []

    async def held(request: Request) -> AsyncIterator[None]:
        del request
        try:
            yield
        except KeyError as error:
            seen.append(error)
            raise

    async def handle(request: Request, error: Exception) -> Response:
        del request
        return Response(str(error), status_code=418)

    router = APIRouter(route_class=DirectRoute, dependencies=[Depends(held)])

    @router.post("/x")
    async def endpoint(request: Request) -> Response:
        raise KeyError(request.method)

    app = app_of(router)
    app.add_exception_handler(KeyError, handle)
    answer = TestClient(app).post("/x")
    assert (answer.status_code, answer.text, len(seen)) == (418, "'POST'", 1)
    assert endpoint


class Order(BaseModel):
    thing: str
    count: int = 1


def shop() -> TestClient:
    router = APIRouter(route_class=DirectRoute)

    @router.post("/orders")
    async def order(asked: Order) -> Order:
        return asked.model_copy(update={"count": asked.count + 1})

    assert order
    app = app_of(router)
    app.add_exception_handler(Exception, handle)
    app.add_exception_handler(RequestValidationError, handle)
    return TestClient(app, raise_server_exceptions=False)


def test_a_model_is_read_from_the_body_and_written_as_the_answer() -> None:
    client = shop()
    answer = client.post("/orders", content=b'{"thing": "tent", "count": 2}')
    assert (answer.status_code, answer.json()) == (200, {"thing": "tent", "count": 3})
    assert answer.headers["content-type"] == "application/json"
    [operation] = client.get("/openapi.json").json()["paths"]["/orders"].values()
    assert "requestBody" in operation


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"{", 400, {"code": "invalid_json", "param": None}),
        (b"", 400, {"code": "invalid_json", "param": None}),
        (b"{}", 422, {"code": "validation_error", "param": "thing"}),
        (b'{"thing": "tent", "count": "many"}', 422, {"code": "validation_error", "param": "count"}),
        (b"[]", 422, {"code": "validation_error", "param": None}),
    ],
    ids=["broken", "empty", "field missing", "field of a wrong type", "no object"],
)
def test_a_body_that_is_no_such_model_is_refused_as_elsewhere(
    body: bytes, status: int, told: dict[str, object]
) -> None:
    answer = shop().post("/orders", content=body)
    error = answer.json()["error"]
    assert (answer.status_code, {name: error[name] for name in told}) == (status, told)


async def nested(request: Request, other: Annotated[int, Depends(lambda: 1)]) -> None:
    del request, other


async def asking(request: Request, word: Annotated[str, Query()]) -> None:
    del request, word


async def without(word: str = "") -> Response:
    return Response(word)


async def both(request: Request, asked: Order) -> Response:
    return Response(f"{request.method} {asked}")


async def plain(request: Request) -> Response:
    return Response(request.method)


async def one(request: Request, word: str) -> Response:
    return Response(f"{request.method} {word}")


@pytest.mark.parametrize(
    ("path", "endpoint", "needed"),
    [("/x", plain, nested), ("/x", plain, asking), ("/x", without, None), ("/x/{word}", one, None), ("/x", both, None)],
    ids=["nested dependency", "dependency with a parameter", "no request", "path parameter", "request and body"],
)
def test_what_a_direct_route_cannot_do_is_refused_when_it_is_declared(
    path: str, endpoint: object, needed: object
) -> None:
    router = APIRouter(route_class=DirectRoute)
    needs = [Depends(needed)] if callable(needed) else []
    assert callable(endpoint)
    with pytest.raises(TypeError, match="direct route"):
        router.add_api_route(path, endpoint, dependencies=needs, response_model=None)
