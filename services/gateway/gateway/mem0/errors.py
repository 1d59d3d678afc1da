"""Adds a ``detail`` field, which the mem0 client displays, to our error responses."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from gateway.access import audit_denial
from memloop.wire.errors import MemloopError
from memloop_service import error_response
from memloop_service.errors import as_error

_OF_THE_BODY = ("content-length", "content-type")


class Mem0Route(APIRoute):
    """A route whose error responses have ``detail`` beside ``error``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap FastAPI's handler so that failures are answered here."""
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await handler(request)
            except (MemloopError, RequestValidationError) as failure:
                return _refused(request, failure)

        return answered


def _refused(request: Request, failure: Exception) -> Response:
    error = as_error(failure, request)
    audit_denial(request, error)
    plain = error_response(error)
    headers = {name: value for name, value in plain.headers.items() if name not in _OF_THE_BODY}
    content = error.envelope().model_dump() | {"detail": error.message}
    return JSONResponse(content, status_code=plain.status_code, headers=headers)
