"""A run's sizes and counts as input of the estimate, independent of any framework."""

from __future__ import annotations

from dataclasses import dataclass

from memloop.profiles import Profile
from trainer.data.rows import AgentName
from trainer.estimate.shapes import ModelShape


@dataclass(frozen=True, slots=True)
class Sharding:
    """The trainer's distribution over the GPUs.

    ``tensor`` and ``pipeline`` cut the model (Megatron; 1 and 1 for FSDP); ``replicas`` of what is cut share the
    optimizer's states, under FSDP (``whole`` False) weights and gradients too. ``weight_bytes`` of a weight that the
    optimizer changes; ``offloaded`` leaves the GPU while rollouts are made.
    """

    tensor: int
    pipeline: int
    replicas: int
    whole: bool
    weight_bytes: int
    offloaded: bool = False


@dataclass(frozen=True, slots=True)
class Updates:
    """Passes over the rows: ``micro_tokens`` at once on a GPU; with ``recompute`` the backward pass reruns each layer;
    ``reference`` and ``old`` are passes for their log-probabilities; ``adapter_rank`` 0 trains all weights. ``padded``
    rows of a micro-batch are as long as its longest; ``fused`` kernels keep no logits.
    """

    micro_tokens: int
    recompute: bool
    reference: bool
    old: bool
    adapter_rank: int
    padded: bool = False
    fused: bool = False


@dataclass(frozen=True, slots=True)
class Engine:
    """The rollout engine: GPUs of a replica, its share of their memory, the longest row, the most rows at once."""

    tensor: int
    memory_share: float
    row_tokens: int
    most_rows: int


@dataclass(frozen=True, slots=True)
class Loop:
    """The sizes of a rollout's loop."""

    name: AgentName
    profile: Profile
    max_rereads: int
    max_searches: int


@dataclass(frozen=True, slots=True)
class Run:
    """``prompts`` of a batch, ``group`` rollouts of each; ``steps`` None: as many as ``epochs`` over the data have."""

    shape: ModelShape
    gpus: int
    sharding: Sharding
    updates: Updates
    engine: Engine
    loop: Loop
    prompts: int
    group: int
    epochs: int
    steps: int | None = None

    @property
    def trained(self) -> int:
        """Return the number of parameters that the optimizer changes."""
        rank = self.updates.adapter_rank
        return self.shape.adapter_parameters(rank) if rank else self.shape.parameters
