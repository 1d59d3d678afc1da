"""Memory policies per tenant, agent and user, and the redaction that they ask for."""

from gateway.policy.keeper import Keeper, Redactions, keeper_of
from gateway.policy.merging import category_of, end_of
from gateway.policy.policies import Policies
from gateway.policy.rules import with_rules
from gateway.redaction import Redaction, redacted_json

__all__ = [
    "Keeper",
    "Policies",
    "Redaction",
    "Redactions",
    "category_of",
    "end_of",
    "keeper_of",
    "redacted_json",
    "with_rules",
]
