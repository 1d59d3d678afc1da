"""Audits what an administrator does, before it is done; and every denial, with the answer 401, 403 or 404."""

from datetime import UTC, datetime
from typing import cast

from fastapi import FastAPI, Request, Response

from gateway.access.dependencies import CALLER, access_of
from gateway.access.keys import Principal
from memloop.wire.base import request_id
from memloop.wire.errors import Forbidden, MemloopError, OtherTenants, Unauthenticated
from memloop.wire.keys import AuditAction, AuditEntry
from memloop_service import error_response


async def audit_action(
    action: AuditAction, request: Request, principal: Principal, *, tenant: str, target: str = ""
) -> None:
    """Store the audit entry before the action: an action that cannot be audited is not performed."""
    entry = action_entry(action, request, principal, tenant=tenant, target=target)
    auditor = access_of(request).auditor
    await auditor.append([entry])
    auditor.acted(entry)


def action_entry(
    action: AuditAction, request: Request, principal: Principal, *, tenant: str, target: str
) -> AuditEntry:
    """Return the audit entry of an administrator's action."""
    return AuditEntry(
        at=datetime.now(UTC),
        kind="admin",
        action=action,
        tenant=tenant,
        actor_tenant=principal.tenant,
        actor_key=principal.key,
        target=target,
        address=request.client.host if request.client else "",
        request_id=request_id.get(),
    )


def audit_denials(app: FastAPI) -> None:
    """Register handlers that audit the application's denials."""
    for denial in (Unauthenticated, Forbidden, OtherTenants):
        app.add_exception_handler(denial, _denied)


async def _denied(request: Request, failure: Exception) -> Response:
    error, caller = cast(MemloopError, failure), cast(Principal | None, request.scope.get(CALLER))
    tenant, key = ("", "") if caller is None else (caller.tenant, caller.key)
    denial = AuditEntry(
        at=datetime.now(UTC),
        kind="unauthenticated" if caller is None else "denied",
        action="denied",
        tenant=tenant,
        actor_tenant=tenant,
        actor_key=key,
        method=request.method,
        route=cast(str, getattr(request.scope.get("route"), "path", "")),
        status=error.http_status,
        code="other_tenant" if isinstance(error, OtherTenants) else error.code or "",
        address=request.client.host if request.client else "",
        request_id=request_id.get(),
    )
    access_of(request).auditor.denied(denial)
    return error_response(error)
