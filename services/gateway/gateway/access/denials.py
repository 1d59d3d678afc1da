"""Answers 401, 403 and a 404 for another tenant's resource, and records each in the audit log."""

from typing import Final, cast

from fastapi import FastAPI, Request, Response

from gateway.access.access import access_of
from gateway.access.audit import Denial
from gateway.access.dependencies import CALLER
from gateway.access.principal import Principal
from memloop.wire.base import request_id
from memloop.wire.errors import Forbidden, MemloopError, OtherTenants, Unauthenticated
from memloop_service import error_response

_DENIALS: Final = (Unauthenticated, Forbidden, OtherTenants)


def audit_denials(app: FastAPI) -> None:
    """Register handlers that audit the application's denials."""
    for denial in _DENIALS:
        app.add_exception_handler(denial, _denied)


async def _denied(request: Request, failure: Exception) -> Response:
    error = cast(MemloopError, failure)
    access_of(request).auditor.denied(_denial(request, error), request_id=request_id.get())
    return error_response(error)


def _denial(request: Request, error: MemloopError) -> Denial:
    caller = cast(Principal | None, request.scope.get(CALLER))
    code = "other_tenant" if isinstance(error, OtherTenants) else error.code or ""
    where = {
        "method": request.method,
        "route": cast(str, getattr(request.scope.get("route"), "path", "")),
        "address": request.client.host if request.client else "",
    }
    if caller is None:
        return Denial("unauthenticated", error.http_status, code, **where)
    return Denial("denied", error.http_status, code, tenant=caller.tenant, key=caller.key, **where)
