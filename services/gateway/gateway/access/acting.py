"""Audits what an administrator does, before it is done."""

from datetime import UTC, datetime

from fastapi import Request

from gateway.access.access import access_of
from gateway.access.principal import Principal
from memloop.wire.audit import AuditAction, AuditEntry
from memloop.wire.base import request_id


async def audit_action(
    action: AuditAction, request: Request, principal: Principal, *, tenant: str, target: str = ""
) -> None:
    """Store the audit entry before the action: an action that cannot be audited is not performed."""
    entry = action_entry(action, request, principal, tenant=tenant, target=target)
    auditor = access_of(request).auditor
    await auditor.log.append([entry])
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
