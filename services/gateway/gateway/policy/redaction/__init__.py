"""Finds secrets and personal data in texts by rules, without a model."""

from gateway.policy.redaction.finding import NEVER as NEVER
from gateway.policy.redaction.finding import Detector as Detector
from gateway.policy.redaction.finding import Found as Found
from gateway.policy.redaction.finding import Redaction as Redaction
from gateway.policy.redaction.finding import detector_at as detector_at
from gateway.policy.redaction.finding import find_by_rules as find_by_rules
from gateway.policy.redaction.finding import redacted_json as redacted_json
from gateway.policy.redaction.finding import replaced as replaced
from gateway.policy.redaction.phrases import refusals_of as refusals_of
