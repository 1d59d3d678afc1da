"""Finds secrets and personal data in texts by rules, without a model."""

from gateway.policy.redaction.finding import (
    NEVER,
    Detector,
    Found,
    Redaction,
    detector_at,
    find_by_rules,
    mark_of,
    redacted_json,
    replaced,
)
from gateway.policy.redaction.phrases import Refusals, refusals_of

__all__ = [
    "NEVER",
    "Detector",
    "Found",
    "Redaction",
    "Refusals",
    "detector_at",
    "find_by_rules",
    "mark_of",
    "redacted_json",
    "refusals_of",
    "replaced",
]
