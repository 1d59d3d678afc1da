"""Estimates the bytes on one GPU: while the policy is updated, and while rollouts are made.

    FSDP2, P weights over N GPUs      b·P/N weights, b·P/N gradients, 2b·P/N of Adam's moments       b = 4 (float32)
                                      and whole for a moment, in bfloat16: two layers and the embeddings; in float32
                                      the gradients of one layer and of the embeddings before they are shared out
    Megatron, cut into t·p, d copies  2·P/tp weights, 4·P/tp gradients, 12·P/(tp·d) float32 weights and moments
    activations of T tokens           2·L·T·h where layers are recomputed, and one layer's own:
                                      2·T·(4h + 2(H + K)·head + 4·intermediate); /t, and L/p layers, under Megatron
    logits                            T·V·(bytes per logit, an assumption); /t under Megatron
                                      by fused kernels 20·C·V of a piece of C = 512 tokens, and 4·V·h of gradients
    T tokens                          a micro-batch's, and its padding (an assumption) where rows are padded

The reference policy under FSDP2 lies in the hosts' memory, under Megatron it is offloaded: it is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trainer.estimate.assumptions import Assumptions
from trainer.estimate.hardware import GIB, GPUS
from trainer.estimate.run import Run, Updates

_HALF, _FULL = 2, 4
_PIECE_TOKENS, _PIECE_BYTES = 512, 20
"""Of verl's fused linear layer: its piece, and five float32 arrays over it in the backward pass."""
ENGINE_RUNTIME_BYTES: Final = 2 * GIB
"""Taken from the engine's share: its graphs and activations. The launcher's planner assumes the same."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one GPU; ``cache`` is the engine's space for keys and values, negative when it lacks memory."""

    update: dict[str, float]
    rollout: dict[str, float]
    cache: float
    gpu: float
    cached_rows: int

    @property
    def fits(self) -> bool:
        """Return whether both phases fit, and the engine's cache holds a row of full length."""
        return max(sum(self.update.values()), sum(self.rollout.values())) <= self.gpu and self.cached_rows >= 1


def memory_of(run: Run, assumed: Assumptions) -> Memory:
    """Apply the formulas above."""
    gpu = GPUS[assumed.gpu].memory_gib * GIB
    state = _state(run)
    passing = {
        "whole layers": _gathered(run),
        "activations": _activations(run, assumed),
        "logits": _logits(run, assumed),
        "runtime": assumed.runtime_gib * GIB,
    }
    kept = {} if run.sharding.offloaded else {part: state[part] for part in _kept(run)}
    engine = gpu * run.engine.memory_share
    rest = {"engine": engine, "weights on their way": assumed.sync_gib * GIB, "runtime": assumed.runtime_gib * GIB}
    cache = engine - _HALF * run.shape.parameters / run.engine.tensor - ENGINE_RUNTIME_BYTES
    row = run.shape.cached_bytes / run.engine.tensor * run.engine.row_tokens
    return Memory(state | passing, kept | rest, cache, gpu, int(max(0.0, cache) // row))


def _state(run: Run) -> dict[str, float]:
    """Return the state that stays between micro-batches."""
    where, everything, trained = run.sharding, run.shape.parameters, run.trained
    parts, stored = where.tensor * where.pipeline, where.weight_bytes
    if where.whole:
        return {
            "weights": _HALF * everything / parts,
            "gradients": _FULL * trained / parts,
            "optimizer": 3 * _FULL * trained / parts / where.replicas,
        }
    return {
        "weights": stored * everything / where.replicas,
        "gradients": stored * trained / where.replicas,
        "optimizer": 2 * stored * trained / where.replicas,
    }


def _kept(run: Run) -> tuple[str, ...]:
    """Return the buffers kept between phases: Megatron keeps its gradients in one buffer; FSDP frees them."""
    return ("weights", "gradients", "optimizer") if run.sharding.whole else ("weights", "optimizer")


def _gathered(run: Run) -> float:
    """Return the bytes that FSDP gathers temporarily."""
    if run.sharding.whole:
        return 0.0
    layer, ends = run.shape.layer_parameters, run.shape.embedding_parameters
    gradients = 0.0 if run.updates.adapter_rank else _FULL * (layer + ends)
    return _HALF * (2 * layer + ends) + gradients


def _tokens(updates: Updates, assumed: Assumptions) -> float:
    """Return the tokens of a micro-batch as the model computes them."""
    return updates.micro_tokens * (assumed.padding if updates.padded else 1)


def _logits(run: Run, assumed: Assumptions) -> float:
    shape, updates = run.shape, run.updates
    if updates.fused:
        gradients = 0 if updates.adapter_rank else 2 * _HALF * shape.vocabulary * shape.hidden
        return _PIECE_TOKENS * shape.vocabulary * _PIECE_BYTES + gradients
    return _tokens(updates, assumed) * shape.vocabulary * assumed.logit_bytes / run.sharding.tensor


def _activations(run: Run, assumed: Assumptions) -> float:
    shape, tokens, cut = run.shape, _tokens(run.updates, assumed), run.sharding
    own = 4 * shape.hidden + 2 * (shape.heads + shape.kv_heads) * shape.head_dim + 4 * shape.intermediate
    layers = shape.layers / cut.pipeline
    numbers = layers * shape.hidden + own if run.updates.recompute else layers * own
    return _HALF * tokens * numbers / cut.tensor
