"""Converts a composed recipe to the input of the estimate (:mod:`trainer.estimate`)."""

from __future__ import annotations

from typing import Any

from trainer.estimate.run import Engine, Loop, Run, Sharding, Updates
from trainer.estimate.shapes import shape_of
from trainer.rollout.recipe import Composed

_BYTES = {"fp32": 4, "bf16": 2, "bfloat16": 2, "float32": 4}


def run_of(recipe: Composed) -> Run:
    """Extract the recipe's sizes. Raises UnknownShape, and ValueError for GPUs that do not divide, or an agent."""
    config: Any = recipe.config
    rollout, model = config.actor_rollout_ref.rollout, config.actor_rollout_ref.model
    gpus = config.trainer.nnodes * config.trainer.n_gpus_per_node
    if gpus % rollout.tensor_model_parallel_size:
        raise ValueError(f"{gpus} GPUs do not divide into engines of {rollout.tensor_model_parallel_size}")
    return Run(
        shape=shape_of(recipe.assumptions.model or str(model.path)),
        gpus=gpus,
        sharding=_sharding(config, gpus),
        updates=_updates(config),
        engine=Engine(
            tensor=rollout.tensor_model_parallel_size,
            memory_share=rollout.gpu_memory_utilization,
            row_tokens=config.data.max_prompt_length + config.data.max_response_length,
            most_rows=rollout.max_num_seqs,
        ),
        loop=_loop(recipe),
        prompts=config.data.train_batch_size,
        group=rollout.n,
        epochs=config.trainer.total_epochs,
        steps=config.trainer.total_training_steps,
    )


def _sharding(config: Any, gpus: int) -> Sharding:
    actor = config.actor_rollout_ref.actor
    if actor.strategy == "megatron":
        cut = actor.megatron
        parts = cut.tensor_model_parallel_size * cut.pipeline_model_parallel_size * cut.context_parallel_size
        if gpus % parts:
            raise ValueError(f"{gpus} GPUs do not divide into models of {parts}")
        return Sharding(
            tensor=cut.tensor_model_parallel_size,
            pipeline=cut.pipeline_model_parallel_size,
            replicas=gpus // parts,
            whole=True,
            weight_bytes=2,
            offloaded=cut.param_offload and cut.optimizer_offload,
        )
    fsdp = actor.fsdp_config
    return Sharding(
        tensor=1,
        pipeline=1,
        replicas=gpus if fsdp.fsdp_size < 0 else fsdp.fsdp_size,
        whole=False,
        weight_bytes=_BYTES[fsdp.model_dtype],
        offloaded=fsdp.param_offload and fsdp.optimizer_offload,
    )


def _updates(config: Any) -> Updates:
    policy, model = config.actor_rollout_ref.actor, config.actor_rollout_ref.model
    if policy.strategy == "megatron":
        recompute = policy.megatron.override_transformer_config.recompute_granularity == "full"
    else:
        recompute = bool(model.enable_gradient_checkpointing)
    return Updates(
        micro_tokens=policy.ppo_max_token_len_per_gpu,
        recompute=recompute,
        reference=bool(policy.use_kl_loss),
        old=not config.algorithm.rollout_correction.bypass_mode,
        adapter_rank=model.lora_rank,
        padded=not model.use_remove_padding,
        fused=bool(model.use_fused_kernels),
    )


def _loop(recipe: Composed) -> Loop:
    config: Any = recipe.config
    if recipe.settings.agent:
        raise ValueError(f"the calls of {recipe.settings.agent} are not known: only our loops can be estimated")
    return Loop(
        name=config.actor_rollout_ref.rollout.agent.default_agent_loop,
        profile=recipe.settings.loaded(),
        max_rereads=recipe.settings.max_rereads,
        max_searches=recipe.settings.max_searches,
    )
