"""Authenticates callers, checks scopes, enforces rate limits, and audits all three."""

from gateway.access.access import load_static_keys as load_static_keys
from gateway.access.access import open_access as open_access
from gateway.access.acting import audit_action as audit_action
from gateway.access.acting import audit_denials as audit_denials
from gateway.access.dependencies import AdmittedDep as AdmittedDep
from gateway.access.dependencies import Allowance as Allowance
from gateway.access.dependencies import AllowanceDep as AllowanceDep
from gateway.access.dependencies import BatchRoom as BatchRoom
from gateway.access.dependencies import ManagedTenant as ManagedTenant
from gateway.access.dependencies import NamespaceDep as NamespaceDep
from gateway.access.dependencies import Needed as Needed
from gateway.access.dependencies import OptionalId as OptionalId
from gateway.access.dependencies import PrincipalDep as PrincipalDep
from gateway.access.dependencies import QueryId as QueryId
from gateway.access.dependencies import Room as Room
from gateway.access.dependencies import Tenant as Tenant
from gateway.access.dependencies import access_of as access_of
from gateway.access.dependencies import announced_bytes as announced_bytes
from gateway.access.dependencies import namespace_named as namespace_named
from gateway.access.dependencies import needs as needs
from gateway.access.dependencies import principal_of as principal_of
from gateway.access.dependencies import takes as takes
from gateway.access.estimates import estimate_tokens as estimate_tokens
from gateway.access.front_ends import UserHeaders as UserHeaders
from gateway.access.keys import Principal as Principal
from gateway.access.keys import managed as managed
