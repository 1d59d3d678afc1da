"""Registers the CPU platform and its rollout engine in each verl process (``VERL_USE_EXTERNAL_MODULES``).

It is loaded during verl's own import, so it names our other modules, and verl imports them later.
"""

# verl is largely untyped.
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false, reportMissingTypeStubs=false
from __future__ import annotations

from verl.plugin.platform.platform_manager import PlatformRegistry

from trainer.rollout.cpu import PLATFORM, ROLLOUT
from trainer.rollout.cpu.platform import CpuPlatform

PlatformRegistry.register(PLATFORM)(CpuPlatform)

from verl.workers.rollout import base, replica  # noqa: E402 -- what follows asks for the platform


def _cpu_replica() -> type[replica.RolloutReplica]:
    from trainer.rollout.cpu.replica import CpuReplica

    return CpuReplica


replica.RolloutReplicaRegistry.register(ROLLOUT, _cpu_replica)
base._ROLLOUT_REGISTRY[ROLLOUT, "async"] = "trainer.rollout.cpu.replica.CpuWeights"  # noqa: SLF001 -- the only way in
