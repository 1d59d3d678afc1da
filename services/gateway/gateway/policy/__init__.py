"""Memory policies per tenant, agent and user, and the redaction that they ask for."""

from gateway.policy.merging import category_of, end_of
from gateway.policy.policies import (
    Keeper,
    Policies,
    Redactions,
    chars_of,
    keeper_of,
    redacted_metadata,
    redacted_records,
    redacted_turns,
)
from gateway.policy.redaction import Found, Redaction, find_by_rules, redacted_json, replaced

__all__ = [
    "Found",
    "Keeper",
    "Policies",
    "Redaction",
    "Redactions",
    "category_of",
    "chars_of",
    "end_of",
    "find_by_rules",
    "keeper_of",
    "redacted_json",
    "redacted_metadata",
    "redacted_records",
    "redacted_turns",
    "replaced",
]
