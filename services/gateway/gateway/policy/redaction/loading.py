"""Loads the detector that the settings name."""

from typing import cast

from gateway.policy.redaction.finding import Detector, find_by_rules
from gateway.settings import function_at


def detector_at(name: str) -> Detector:
    """Load the detector named ``package.module:function``, or the built-in rules when empty. Raises ValueError."""
    if not name:
        return find_by_rules
    return cast(Detector, function_at(name, setting="MEMLOOP_MEMORY_DETECTOR"))
