"""What verl places on Ray for a run, and whether nodes can hold it.

Ray counts CPUs that reserve no core: a node has as many as its ``num-cpus`` says. verl asks for one group of bundles
for each training node, on one node together, each bundle a GPU and three CPUs. Each storage unit of its transfer queue
and the queue's controller take a CPU for the whole run, and every other actor one while it starts.
"""

# omegaconf is largely untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from omegaconf import DictConfig

_CPUS_OF_A_GPU: Final = 3
"""verl's ``ResourcePoolManager.max_colocate_count``: the worker groups that may share a GPU."""
_CONTROLLER_AND_A_START: Final = 2


@dataclass(frozen=True, slots=True)
class Node:
    """A node's logical resources, as Ray counts them."""

    cpus: float
    gpus: float

    def __str__(self) -> str:
        return f"{self.gpus:g} GPUs and {self.cpus:g} CPUs"


@dataclass(frozen=True, slots=True)
class Demand:
    """``groups`` of ``gpus`` GPUs, each on one node, and ``units`` of the transfer queue dealt over nodes with GPUs."""

    groups: int
    gpus: int
    units: int

    @staticmethod
    def of(config: DictConfig) -> Demand:
        """Return what a recipe's configuration asks for."""
        chosen: Any = config
        queue = chosen.transfer_queue.backend
        units = queue.SimpleStorage.num_data_storage_units if queue.storage_backend == "SimpleStorage" else 0
        return Demand(chosen.trainer.nnodes, chosen.trainer.n_gpus_per_node, units)

    def cpus(self, nodes: int) -> int:
        """Return the CPUs that a node with one group needs, where ``nodes`` nodes have GPUs."""
        return _CPUS_OF_A_GPU * self.gpus + math.ceil(self.units / max(1, nodes)) + _CONTROLLER_AND_A_START

    def shortfall(self, nodes: Sequence[Node]) -> str | None:
        """Return why the nodes can never hold the run, with both numbers; None when they can."""
        with_gpus = [node for node in nodes if node.gpus > 0]
        wanted = f"trainer.nnodes={self.groups} × trainer.n_gpus_per_node={self.gpus}"
        found = ", ".join(map(str, nodes)) or "no node"
        if (room := sum(int(node.gpus // self.gpus) for node in with_gpus)) < self.groups:
            return f"{wanted} needs {self.groups} nodes of {self.gpus} GPUs, and Ray has room for {room}: {found}"
        own = self.cpus(len(with_gpus)) - _CPUS_OF_A_GPU * self.gpus
        packs = sum(
            int(min(node.gpus // self.gpus, max(0.0, node.cpus - own) // (_CPUS_OF_A_GPU * self.gpus)))
            for node in with_gpus
        )
        if packs < self.groups:
            cpus = self.cpus(len(with_gpus))
            return (
                f"{wanted} needs {self.groups} nodes with {cpus} of Ray's logical CPUs each ({_CPUS_OF_A_GPU} a GPU, "
                f"{own} for the transfer queue and starting processes), and Ray has {packs} such: {found}. "
                "Start its nodes with a higher --num-cpus (KubeRay: rayStartParams.num-cpus)"
            )
        return None
