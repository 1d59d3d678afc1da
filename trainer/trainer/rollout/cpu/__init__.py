"""Runs verl on machines without an accelerator: a platform, and a rollout engine over transformers."""

from typing import Final

PLATFORM: Final = "memloop-cpu"
"""The value of ``VERL_PLATFORM``."""
ROLLOUT: Final = "memloop_cpu"
"""The value of ``actor_rollout_ref.rollout.name``."""
