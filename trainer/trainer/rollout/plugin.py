"""What verl loads in each of its processes (``VERL_USE_EXTERNAL_MODULES``): our trainer, and the CPU as a platform.

It is loaded while verl itself is, so it names what other modules of ours hold, and leaves it to verl to import them.
"""

# verl is untyped in large part.
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false, reportMissingTypeStubs=false
from __future__ import annotations

from verl.plugin.platform.platform_manager import PlatformRegistry

from trainer.rollout.cpu import PLATFORM, ROLLOUT
from trainer.rollout.cpu.platform import CpuPlatform

PlatformRegistry.register(PLATFORM)(CpuPlatform)

from verl.workers.rollout import base, replica  # noqa: E402 -- what follows asks for the platform

from trainer.rollout import updates  # noqa: E402


def _cpu_replica() -> type[replica.RolloutReplica]:
    from trainer.rollout.cpu.replica import CpuReplica

    return CpuReplica


replica.RolloutReplicaRegistry.register(ROLLOUT, _cpu_replica)
base._ROLLOUT_REGISTRY[ROLLOUT, "async"] = "trainer.rollout.cpu.replica.CpuWeights"  # noqa: SLF001 -- the only way in

__all__ = ["updates"]
