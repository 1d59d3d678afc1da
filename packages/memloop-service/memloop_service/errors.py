"""Translates every failure into an error response, in OpenAI's ``{"error": {…}}`` unless the route's API has another
style; the only place that does. A style is what the clients of an API expect of every answer.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Match, Route

from memloop.profiles import well_formed
from memloop.wire.errors import ErrorBody, ErrorEnvelope, InvalidRequest, MemloopError, UnknownParameter, Unprocessable
from memloop.wire.fields import LIMIT_CODES


@dataclass(frozen=True, slots=True)
class ApiStyle:
    """The style of one API. ``error_body`` and ``error_status`` describe an error; ``id_headers`` are in lower case."""

    error_body: Callable[[MemloopError], Mapping[str, object]]
    error_status: Callable[[MemloopError], int]
    id_headers: tuple[str, ...]


OPENAI: Final = ApiStyle(
    lambda error: error.envelope().model_dump(), lambda error: error.http_status, ("x-request-id",)
)

api_style: ContextVar[ApiStyle] = ContextVar("api_style", default=OPENAI)
"""The style of the request that is being answered."""


ERRORS: Final[dict[int | str, dict[str, Any]]] = {"4XX": {"model": ErrorEnvelope}, "5XX": {"model": ErrorEnvelope}}
"""The failures that every route documents: the ``responses`` of a router."""
_VERSION: Final = "/v1"
_COME_BACK = frozenset({429, 503})
"""Responses with these statuses always carry Retry-After."""
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 409: "conflict_error"}
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type"}


class RouteError(MemloopError):
    """The router's own refusal: no such route, or a wrong method."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str]) -> None:
        super().__init__(message, code=_CODES.get(status, "invalid_request" if status < 500 else "internal_error"))
        self._status = status
        self.headers = headers

    @property
    def http_status(self) -> int:
        return self._status

    def envelope(self) -> ErrorEnvelope:
        """Build the body; its type follows from the status."""
        kind = _TYPES.get(self._status, "invalid_request_error" if self._status < 500 else "api_error")
        return ErrorEnvelope(error=ErrorBody(message=self.message, type=kind, code=self.code))


def error_response(error: MemloopError) -> JSONResponse:
    """Build the response of an error in the style of the request's API, with the headers of its status."""
    style = api_style.get()
    headers = dict(error.headers) if isinstance(error, RouteError) else {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(math.ceil(error.retry_after_s))
    elif error.http_status in _COME_BACK:
        headers["Retry-After"] = "1"
    if error.http_status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(style.error_body(error), status_code=style.error_status(error), headers=headers)


async def handle(request: Request, failure: Exception) -> JSONResponse:
    return error_response(as_error(failure, request))


def as_error(failure: Exception, request: Request) -> MemloopError:
    """Convert any exception to a MemloopError; an unknown one reveals nothing about itself."""
    if isinstance(failure, MemloopError):
        return failure
    if isinstance(failure, RequestValidationError):
        faults = cast(Sequence[Mapping[str, Any]], failure.errors())
        if faults[0]["type"] == "json_invalid":
            return InvalidRequest("the body is not valid JSON", code="invalid_json")
        body = getattr(request.scope.get("route"), "body_field", None)
        below = [{**one, "loc": one["loc"][1:]} for one in faults]
        return first_fault(None if body is None else body.field_info.annotation, below, whole=faults[0]["loc"][0])
    if isinstance(failure, HTTPException):
        return _refused(failure, request)
    if isinstance(failure, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", failure)
        only = group.exceptions[0] if len(group.exceptions) == 1 else RuntimeError("several failures")
        return as_error(only, request)
    return MemloopError("internal error; search the logs for the request id")


def _refused(failure: HTTPException, request: Request) -> MemloopError:
    """Translate FastAPI's HTTPException; a body that fails to parse is hidden in the cause of a 400."""
    if isinstance(failure.__cause__, MemloopError):
        return failure.__cause__
    headers = dict(failure.headers or {})
    if failure.status_code == 405:
        # Collect the methods of every route of this path; the router itself lists only the first route's
        routes = [route for route in cast(Sequence[BaseRoute], request.app.routes) if isinstance(route, Route)]
        fitting = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
        here = min((route.path for route in fitting), key=lambda path: "{" in path, default="")
        headers["Allow"] = ", ".join(
            sorted({method for route in fitting if route.path == here for method in route.methods or ()})
        )
    if failure.status_code in {404, 405}:
        message = f"{failure.detail}: {request.method} {well_formed(request.url.path)}"
        if failure.status_code == 404 and (meant := _meant(request)) is not None:
            message += (
                f". Did you mean {meant}? The base URL of OpenAI's clients ends with /v1, of Anthropic's without."
            )
        return RouteError(failure.status_code, message, headers)
    return RouteError(failure.status_code, failure.detail, headers)


def _meant(request: Request) -> str | None:
    """Return the path of the API that a client with a wrong base URL meant: it lacks ``/v1``, or has it twice."""
    path = request.url.path
    meant = path.removeprefix(_VERSION) if path.startswith(_VERSION * 2 + "/") else _VERSION + path
    scope = {**request.scope, "path": meant}
    routes = cast(Sequence[BaseRoute], request.app.routes)
    return meant if any(route.matches(scope)[0] is not Match.NONE for route in routes) else None


def first_fault(
    model: type[BaseModel] | None, faults: Sequence[Mapping[str, Any]], *, whole: str = ""
) -> InvalidRequest:
    """Return the error for pydantic's faults: of the first unknown field of the model, else of the first fault.

    ``whole`` names what was validated, for a fault of all of it.
    """
    if model is not None and (unknown := _unknown_field(model, faults)) is not None:
        return unknown
    first = faults[0]
    param = well_formed(".".join(map(str, first["loc"])))
    words = well_formed(first["msg"].replace("Tuple", "List", 1))
    code = first["type"] if first["type"] in LIMIT_CODES else None
    return Unprocessable(f"{place}: {words}" if (place := param or whole) else words, param=param or None, code=code)


def _unknown_field(model: type[BaseModel], faults: Sequence[Mapping[str, Any]]) -> UnknownParameter | None:
    """Return the error for the first unknown field, with the closest that its object has; None without one.

    A misspelt field that is required is a missing and an unknown one: the client learns of the second. An unknown field
    of one of several possible models counts only as the first fault: another model may have been meant.
    """
    for number, fault in enumerate(faults):
        if fault["type"] != "extra_forbidden":
            continue
        *above, name = cast(Sequence[str | int], fault["loc"])
        found = _models_at(model, above)
        if found or number == 0:
            known = [field.alias or one for each in found for one, field in each.model_fields.items()]
            return UnknownParameter(str(name), known=known, within=".".join(map(str, above)))
    return None


def _models_at(model: type[BaseModel], place: Sequence[str | int]) -> list[type[BaseModel]]:
    """Return the models of the object at the place; none where a part of the place is not a field or an index."""
    found = [model]
    for part in place:
        if isinstance(part, int):
            continue
        kinds = [
            field.annotation
            for each in found
            for name, field in each.model_fields.items()
            if part in (name, field.alias)
        ]
        found = [inner for kind in kinds for inner in _models_in(kind)]
    return found


def _models_in(kind: object) -> Iterator[type[BaseModel]]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _models_in(part)
