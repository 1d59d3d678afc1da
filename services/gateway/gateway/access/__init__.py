"""Authenticates callers, checks scopes, enforces rate limits, and audits all three."""

from gateway.access.access import load_static_keys, open_access
from gateway.access.acting import audit_action, audit_denials
from gateway.access.dependencies import (
    Allowance,
    AllowanceDep,
    BatchRoom,
    NamespaceDep,
    Needed,
    OptionalId,
    PrincipalDep,
    QueryId,
    Room,
    Tenant,
    access_of,
    announced_bytes,
    namespace_named,
    needs,
    principal_of,
)
from gateway.access.estimates import estimate_tokens
from gateway.access.front_ends import UserHeaders
from gateway.access.keys import Principal, managed

__all__ = [
    "Allowance",
    "AllowanceDep",
    "BatchRoom",
    "NamespaceDep",
    "Needed",
    "OptionalId",
    "Principal",
    "PrincipalDep",
    "QueryId",
    "Room",
    "Tenant",
    "UserHeaders",
    "access_of",
    "announced_bytes",
    "audit_action",
    "audit_denials",
    "estimate_tokens",
    "load_static_keys",
    "managed",
    "namespace_named",
    "needs",
    "open_access",
    "principal_of",
]
