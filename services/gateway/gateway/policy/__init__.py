"""Memory policies per tenant, agent and user, and the redaction that they ask for."""

from gateway.policy.keeper import Keeper, Redactions, keeper_of
from gateway.policy.merging import category_of, end_of
from gateway.policy.policies import Policies
from gateway.policy.redaction import Found, Redaction, find_by_rules, redacted_json, replaced
from gateway.policy.rules import with_rules

__all__ = [
    "Found",
    "Keeper",
    "Policies",
    "Redaction",
    "Redactions",
    "category_of",
    "end_of",
    "find_by_rules",
    "keeper_of",
    "redacted_json",
    "replaced",
    "with_rules",
]
