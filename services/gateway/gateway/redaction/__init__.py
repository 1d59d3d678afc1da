"""Finds secrets and personal data in texts by rules, without a model."""

from gateway.redaction.finding import Detector, Found, Redaction, find_by_rules, mark_of, redacted_json, replaced
from gateway.redaction.loading import detector_at

__all__ = ["Detector", "Found", "Redaction", "detector_at", "find_by_rules", "mark_of", "redacted_json", "replaced"]
