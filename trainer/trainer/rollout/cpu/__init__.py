"""verl on machines without an accelerator: a platform, and a rollout engine over transformers."""

from typing import Final

PLATFORM: Final = "memloop-cpu"
"""What ``VERL_PLATFORM`` says."""
ROLLOUT: Final = "memloop_cpu"
"""What ``actor_rollout_ref.rollout.name`` says."""
