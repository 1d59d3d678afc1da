"""Serves ``/v1/admin``: creates, lists, rotates and revokes API keys, and reads the audit log. Needs scope ``admin``.

A key made at run time manages its own tenant; it makes and rotates no key with a scope or a lifetime that it lacks
itself. A key configured by the operator (environment or file) manages any tenant, selected with ``tenant``.
"""

import time
from typing import Annotated, TypeAlias

from fastapi import APIRouter, Query, Request

from gateway.access.access import Access
from gateway.access.acting import action_entry
from gateway.access.dependencies import AccessDep, ManagedTenant, PrincipalDep, Room, needs
from gateway.access.key_records import KeyRecord, digest_of, new_key_id, new_secret, prefix_of
from gateway.access.keys import Principal, managed
from memloop.wire.errors import Conflict, Forbidden, OtherTenants, Unprocessable
from memloop.wire.keys import AuditEntry, AuditKind, AuditPage, KeyCreate, KeyPage, KeyRevoked, KeyRotate, NewApiKey
from memloop_service import ERRORS
from memloop_service.http import body_of, read_ours

Limit: TypeAlias = Annotated[int, Query(ge=1, le=100)]
KeyCursor: TypeAlias = Annotated[str | None, Query(pattern="^key_[0-9a-f]{1,64}$")]
AuditCursor: TypeAlias = Annotated[str | None, Query(pattern="^[0-9]{1,15}-[0-9]{1,15}$")]

router = APIRouter(prefix="/v1/admin", tags=["admin"], dependencies=[needs("admin")], responses=ERRORS)


@router.post("/keys", status_code=201, dependencies=[Room], openapi_extra=body_of(KeyCreate))
async def create_key(request: Request, access: AccessDep, principal: PrincipalDep) -> NewApiKey:
    """Create an API key. Only this response contains its secret."""
    asked = await read_ours(request, KeyCreate)
    if asked.expires_at is not None and asked.expires_at <= time.time():
        raise Unprocessable("expires_at is in the past.", param="expires_at")
    tenant = managed(principal, asked.tenant)
    principal.require_no_wider(asked.scopes, expires_at=asked.expires_at)
    secret = new_secret()
    record = KeyRecord(
        id=new_key_id(),
        tenant=tenant,
        name=asked.name,
        prefix=prefix_of(secret),
        scopes=tuple(sorted(set(asked.scopes))),
        digest=digest_of(secret),
        created_at=int(time.time()),
        expires_at=asked.expires_at,
    )
    entry = action_entry("key.created", request, principal, tenant=record.tenant, target=record.id)
    await access.records.change(None, record, entry)
    return _made(record, secret, entry, access)


@router.get("/keys")
async def list_keys(access: AccessDep, tenant: ManagedTenant, cursor: KeyCursor = None, limit: Limit = 20) -> KeyPage:
    """List a tenant's API keys, newest first. Keys configured by the operator are not listed."""
    found = await access.records.page(tenant, cursor=cursor, limit=limit + 1)
    data, more = tuple(found[:limit]), len(found) > limit
    return KeyPage(data=data, next_cursor=data[-1].id if more else None, has_more=more)


@router.post("/keys/{key_id}/rotate", dependencies=[Room], openapi_extra=body_of(KeyRotate))
async def rotate_key(key_id: str, request: Request, access: AccessDep, principal: PrincipalDep) -> NewApiKey:
    """Rotate a key's secret. The previous secret stays valid for ``overlap_s`` seconds; older ones end now."""
    asked = await read_ours(request, KeyRotate)
    old = await _managed_key(key_id, access, principal)
    principal.require_no_wider(old.scopes, expires_at=old.expires_at)
    if old.expires_at is not None and old.expires_at <= time.time():
        raise Conflict("The key has expired. Create a new one.", code="api_key_expired")
    secret = new_secret()
    new = old.rotated(secret, overlap_s=asked.overlap_s)
    entry = action_entry("key.rotated", request, principal, tenant=new.tenant, target=new.id)
    await access.records.change(old, new, entry)
    return _made(new, secret, entry, access)


@router.delete("/keys/{key_id}")
async def revoke_key(key_id: str, request: Request, access: AccessDep, principal: PrincipalDep) -> KeyRevoked:
    """Revoke a key: at once in this process, within a second in all others."""
    record = await _managed_key(key_id, access, principal)
    entry = action_entry("key.revoked", request, principal, tenant=record.tenant, target=record.id)
    await access.records.change(record, None, entry)
    access.keys.apply(key_id, None)
    access.auditor.acted(entry)
    return KeyRevoked(id=key_id)


@router.get("/audit")
async def read_audit(
    access: AccessDep,
    principal: PrincipalDep,
    tenant: ManagedTenant,
    kind: AuditKind = "admin",
    cursor: AuditCursor = None,
    limit: Limit = 50,
) -> AuditPage:
    """List key changes or denied requests, newest first. Unauthenticated requests are visible to operators only."""
    if kind == "unauthenticated" and not principal.is_operator:
        raise Forbidden("Only operator keys may list unauthenticated requests.", param="kind", code="permission_denied")
    whose = "" if kind == "unauthenticated" else tenant
    return await access.auditor.page(kind, whose, cursor=cursor, limit=limit)


async def _managed_key(key_id: str, access: Access, principal: Principal) -> KeyRecord:
    """Return the key. Raises NotFound if the caller may manage no key of this id."""
    record = await access.records.get(key_id)
    if record.tenant != principal.tenant and not principal.is_operator:
        raise OtherTenants(f"Key {key_id!r} not found.", param="key_id")
    return record


def _made(record: KeyRecord, secret: str, entry: AuditEntry, access: Access) -> NewApiKey:
    access.keys.apply(record.id, record)
    access.auditor.acted(entry)
    return NewApiKey(**record.shown().model_dump(), secret=secret)
