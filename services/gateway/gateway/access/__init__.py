"""Authenticates callers, checks scopes, enforces rate limits, and audits all three."""

from gateway.access.access import access_of, open_access
from gateway.access.acting import audit_action
from gateway.access.allowance import Allowance, RateHeaders
from gateway.access.denials import audit_denials
from gateway.access.dependencies import (
    AllowanceDep,
    BatchRoom,
    Needed,
    PrincipalDep,
    Room,
    Tenant,
    announced_bytes,
    needs,
    principal_of,
)
from gateway.access.estimates import estimate_tokens
from gateway.access.named import NamespaceDep, OptionalId, QueryId
from gateway.access.principal import Principal, managed
from gateway.access.static_keys import load_static_keys
from gateway.access.user_headers import UserHeaders
from gateway.access.user_names import namespace_named

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
    "RateHeaders",
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
