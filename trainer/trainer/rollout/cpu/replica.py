"""The CPU engine as a rollout of verl: an actor that serves tokens, and the training process's handle to it."""

# verl and Ray are largely untyped; values that reach our own code are typed.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, cast

import ray
import torch
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from torch import Tensor
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput

from trainer.rollout.cpu.engine import CpuEngine, Size
from trainer.rollout.cpu.sampling import Decoding


class CpuServer:
    """The actor. ``version`` is the training step of its weights."""

    def __init__(self, folder: str, size: Size, *, seed: int) -> None:
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        self._engine = CpuEngine(folder, size, seed=seed)
        self._seed = seed
        self._version = 0

    async def generate(
        self, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any
    ) -> TokenOutput:
        """Generate token IDs and log-probabilities from token IDs, the same ones for the same ``call``."""
        decoding = Decoding(
            temperature=sampling_params["temperature"],
            top_p=sampling_params.get("top_p", 1.0),
            top_k=sampling_params.get("top_k", -1),
        )
        version = self._version
        reply = await self._engine.generate(
            list(prompt_ids),
            max_tokens=sampling_params["max_tokens"],
            decoding=decoding,
            seed=f"{self._seed} {sampling_params['call']}",
        )
        return TokenOutput(
            token_ids=reply.made,
            log_probs=reply.log_probs,
            stop_reason="completed" if reply.ended else "length",
            extra_fields={"global_steps": version},
        )

    async def load(self, weights: dict[str, Tensor], version: int) -> None:
        """Load the weights of a training step."""
        await self._engine.load(weights)
        self._version = version

    async def nothing(self, **_: Any) -> None:
        """Do nothing: verl's calls for engines that hold accelerator memory."""

    wake_up = sleep = abort_all_requests = resume_generation = nothing
    clear_kv_cache = release_kv_cache = resume_kv_cache = start_profile = stop_profile = nothing


class CpuReplica(RolloutReplica):
    """One server on the node of the training process of the same rank."""

    async def launch_servers(self) -> None:
        """Start the actor on the node of its training process."""
        worker = self.workers[0]
        node: Any = ray.get(cast(Any, worker).__ray_call__.remote(_node_of))
        size = Size(rows=self.config.max_num_seqs, length=self.config.prompt_length + self.config.response_length)
        server: Any = ray.remote(CpuServer)
        self._server_handle = server.options(
            name=_actor_name(self.replica_rank),
            max_concurrency=self.max_concurrency,
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node, soft=False),
        ).remote(self.model_config.path, size, seed=self.config.seed)
        self.servers = [self._server_handle]
        self._server_address = _actor_name(self.replica_rank)


class CpuWeights(BaseRollout):
    """The training process's handle to the rollout, for sending weights."""

    async def update_weights(
        self,
        weights: Iterable[tuple[str, Tensor]],
        wire_format: str = "named_tensors",
        *,
        global_steps: int | None = None,
        **_: Any,
    ) -> None:
        """Send all weights at once through Ray's object store. Raises ValueError for any other wire format."""
        if wire_format != "named_tensors":
            raise ValueError(f"the CPU rollout takes whole weights, not {wire_format}")
        held = {name: weight.detach().to("cpu", torch.float32).clone() for name, weight in weights}
        server: Any = ray.get_actor(_actor_name(torch.distributed.get_rank()))
        await server.load.remote(held, global_steps or 0)

    async def resume(self, tags: list[str]) -> None:
        """Do nothing: no memory was released."""

    async def release(self) -> None:
        """Do nothing: there is no memory to release."""


def _node_of(_: object) -> str:
    return ray.get_runtime_context().get_node_id()


def _actor_name(rank: int) -> str:
    return f"memloop_cpu_server_{rank}"
