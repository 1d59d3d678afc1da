"""A route for the hot path: FastAPI resolves and documents it once but does not run it.

FastAPI's resolver, its three exit stacks and its wrappers around every sent message serve features that such a route
does not use: parameters in the path, the query and the headers. The declaration stays the only source: the same
dependencies and the same body are documented and run. The numbers: docs/decisions/0012-direct-routes.md.
"""

import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from fastapi import FastAPI, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from memloop.wire.errors import InvalidRequest
from memloop_service.headers import IndexedRequest
from memloop_service.turns import in_turn

_ANSWERS: Final = "memloop.answers"
"""The scope's key that is set once a direct route has an answer to send."""
_OUTERMOST: Final = (500, Exception)
"""What Starlette's outermost layer handles."""


class DirectRoute(APIRoute):
    """A route whose dependencies take only the request, and whose endpoint takes dependencies and the request or the
    body's model.

    The endpoint returns a Response, or a model to serialise; dependencies that yield stay open until the last byte.
    Raises TypeError when a declared route asks for anything else.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        asked = self.dependant
        if _has_parameters(asked) or (asked.request_param_name is None) != (len(asked.body_params) == 1):
            raise TypeError(f"{path}: a direct route's endpoint takes dependencies, and the request or one model")
        self._needs = [_need(needed) for needed in asked.dependencies]
        self._body = _Body.of(asked) if asked.body_params else None
        self.app = self._run

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = IndexedRequest(scope, receive, send)
        held: list[AsyncGenerator[object]] = []
        failure: BaseException | None = None
        try:
            response = await self._answer(request, held)
            scope[_ANSWERS] = True
            await response(scope, receive, send)
        except BaseException as error:  # noqa: BLE001 - raised again by who ends the dependencies
            failure = error
        try:
            await _end(held, failure)
        finally:
            failure = None  # it refers to this frame

    async def _answer(self, request: Request, held: list[AsyncGenerator[object]]) -> Response:
        """Resolve the dependencies and call the endpoint; ``held`` gets the dependencies that yield."""
        values: dict[str, object] = {}
        for need in self._needs:
            value = await need.get(request, held)
            if need.name is not None:
                values[need.name] = value
        if self._body is not None:
            raw = await request.body()
            values[self._body.name] = await in_turn(request.scope, len(raw), partial(self._body.model_in, raw))
        elif self.dependant.request_param_name is not None:
            values[self.dependant.request_param_name] = request
        answer: Response | BaseModel = await self.endpoint(**values)
        return answer if isinstance(answer, Response) else json_response(answer)


class DirectDispatch:
    """ASGI middleware, the innermost one: leads a request straight to its direct route, else on to the router.

    It does what Starlette's and FastAPI's own innermost layers do for such a route: to find it by method and path, and
    to answer its errors by the app's handlers, which are those that ``app`` has at the first error.
    """

    def __init__(self, inner: ASGIApp, *, app: FastAPI) -> None:
        self._inner = inner
        self._app = app
        self._routes = _by_request(app.router.routes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI call."""
        route = self._routes.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if route is None or scope.get("root_path"):
            await self._inner(scope, receive, send)
            return
        scope["route"], scope["endpoint"], scope["path_params"] = route, route.endpoint, {}
        try:
            await route.app(scope, receive, send)
        except Exception as failure:
            if _ANSWERS in scope:
                raise
            await self._answer_for(failure)(scope, receive, send)

    def _answer_for(self, failure: Exception) -> ASGIApp:
        failures = [failure]

        async def fail(scope: Scope, receive: Receive, send: Send) -> None:
            raise failures.pop()  # the error's traceback holds this frame: if it kept the error, both would stay

        handlers = self._app.exception_handlers
        return ExceptionMiddleware(fail, {kind: handlers[kind] for kind in handlers if kind not in _OUTERMOST})


def _by_request(routes: Sequence[BaseRoute]) -> dict[tuple[str, str], DirectRoute]:
    """Return the direct routes by method and path, as the router would find them: without those behind another one."""
    found: dict[tuple[str, str], DirectRoute] = {}
    for at, route in enumerate(routes):
        if not isinstance(route, DirectRoute):
            continue
        for method in route.methods:
            scope = {"type": "http", "method": method, "path": route.path}
            if not any(other.matches(scope)[0] is Match.FULL for other in routes[:at]):
                found[method, route.path] = route
    return found


def json_response(model: BaseModel, *, status: int = 200) -> Response:
    """Serialise the model as a JSON response in one step."""
    return Response(model.model_dump_json(), status_code=status, media_type="application/json")


@dataclass(frozen=True, slots=True)
class _Body:
    """The endpoint's parameter for the body, and the body's type."""

    name: str
    model: type[BaseModel]

    @classmethod
    def of(cls, asked: Dependant) -> "_Body":
        [field] = asked.body_params
        return cls(field.name, cast("type[BaseModel]", field.field_info.annotation))

    def model_in(self, raw: bytes) -> BaseModel:
        """Parse the body. Raises InvalidRequest for invalid JSON, and FastAPI's error when the object does not fit the
        model.

        The standard library parses it, as in FastAPI: pydantic's own parser rejects deeply nested objects.
        """
        try:
            fields = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise InvalidRequest("the body is not valid JSON", code="invalid_json") from error
        try:
            return self.model.model_validate(fields)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False, include_context=False)
            raise RequestValidationError([{**fault, "loc": ("body", *fault["loc"])} for fault in faults]) from error


@dataclass(frozen=True, slots=True)
class _Need:
    """One dependency, and the endpoint's parameter for its value, if it has one."""

    name: str | None
    call: Callable[[Request], Awaitable[object]] | None
    hold: Callable[[Request], AsyncGenerator[object]] | None

    async def get(self, request: Request, held: list[AsyncGenerator[object]]) -> object:
        """Resolve the dependency; one that yields is added to ``held``."""
        if self.hold is not None:
            generator = self.hold(request)
            value = await anext(generator)
            held.append(generator)
            return value
        return await self.call(request) if self.call is not None else None


async def _end(held: Sequence[AsyncGenerator[object]], failure: BaseException | None) -> None:
    """End the dependencies, the last one first, as ``AsyncExitStack`` does: each gets the failure, and may replace it.

    Raises the failure that is left.
    """
    for generator in reversed(held):
        try:
            if failure is None:
                await anext(generator)
            else:
                await generator.athrow(failure)
        except StopAsyncIteration:
            failure = None
        except BaseException as error:  # noqa: BLE001 - raised below
            failure = error
        else:
            failure = RuntimeError("a dependency yields once")
    try:
        if failure is not None:
            raise failure
    finally:
        failure = None


def _need(needed: Dependant) -> _Need:
    call = cast(Callable[..., Any], needed.call)
    if needed.dependencies or needed.body_params or _has_parameters(needed) or needed.request_param_name is None:
        raise TypeError(f"{call}: a dependency of a direct route takes only the request")
    if inspect.isasyncgenfunction(call):
        return _Need(needed.name, None, call)
    return _Need(needed.name, call, None)


def _has_parameters(needed: Dependant) -> bool:
    return any((needed.path_params, needed.query_params, needed.header_params, needed.cookie_params))
