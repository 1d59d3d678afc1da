"""The records that outlive a request: their kinds, their owners, and the tenants' quotas of them."""

from memloop_service.records.kinds import KINDS, Kind, kind_of
from memloop_service.records.owners import OWNERS, Owner, Owners, owned_args, owned_keys

__all__ = ["KINDS", "OWNERS", "Kind", "Owner", "Owners", "kind_of", "owned_args", "owned_keys"]
