"""Checks that verl lacks: whether a recipe's numbers fit its prompt profile, its rows and one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from memloop.profiles import Profile
from memloop.profiles.fit import CHAT_TEMPLATE_TOKENS, slot_tokens
from memloop.profiles.profile import PromptName
from trainer.data.rows import AgentName
from trainer.objectives.dapo import METRIC
from trainer.objectives.published import PUBLISHED, Published
from trainer.rollout.agent_function import AgentError, load_function
from trainer.rollout.recipe import Composed

_PROMPTS: Final[dict[AgentName, tuple[PromptName, ...]]] = {
    "memagent": ("read", "answer"),
    "memreread": ("read", "answer", "judge", "integrate"),
    "memreader": ("memory",),
}
_CHARACTERS_PER_TOKEN: Final = 3
"""Below any tokenizer's ratio on our templates, so that template tokens are overestimated."""


def contradictions(recipe: Composed) -> list[str]:
    """Return every contradiction of the recipe. A data set's rows may name other loops than the recipe's."""
    return [*_profile(recipe), *_rows(recipe.config), *_masters(recipe.config), *_groups(recipe), *_objective(recipe)]


def longest_prompt(profile: Profile, loop: AgentName) -> int:
    """Return the tokens of the loop's longest prompt with full slots; conversations and query lists count as empty."""
    return max(_filled(profile, name) for name in _PROMPTS[loop])


def longest_reply(profile: Profile, loop: AgentName) -> int:
    """Return the loop's longest permitted reply in tokens."""
    return max(profile.prompts[name].sampling.max_tokens for name in _PROMPTS[loop])


def _filled(profile: Profile, name: PromptName) -> int:
    spec = profile.prompts[name]
    words = len(spec.template) + len(spec.system or "")
    slots = sum(slot_tokens(profile, slot) for slot in spec.slots)
    return slots + words // _CHARACTERS_PER_TOKEN + CHAT_TEMPLATE_TOKENS


def _profile(recipe: Composed) -> Iterator[str]:
    if recipe.settings.agent:
        try:
            load_function(recipe.settings.agent)
        except AgentError as error:
            yield str(error)
        return
    profile, data = recipe.settings.loaded(), recipe.config.data
    loop = recipe.config.actor_rollout_ref.rollout.agent.default_agent_loop
    if loop not in _PROMPTS:
        yield f"the loop {loop} is none of {', '.join(_PROMPTS)}"
        return
    prompt, reply = longest_prompt(profile, loop), longest_reply(profile, loop)
    if data.max_prompt_length < prompt:
        yield f"data.max_prompt_length={data.max_prompt_length}, but prompts of {profile.ref} have up to {prompt}"
    if data.max_response_length < reply:
        yield f"data.max_response_length={data.max_response_length}, but replies of {profile.ref} have up to {reply}"


def _rows(config: Any) -> Iterator[str]:
    row = config.data.max_prompt_length + config.data.max_response_length
    parts = config.actor_rollout_ref
    for name, most in (
        ("actor.ppo_max_token_len_per_gpu", parts.actor.ppo_max_token_len_per_gpu),
        ("ref.log_prob_max_token_len_per_gpu", parts.ref.log_prob_max_token_len_per_gpu),
        ("rollout.log_prob_max_token_len_per_gpu", parts.rollout.log_prob_max_token_len_per_gpu),
        ("rollout.max_model_len", parts.rollout.max_model_len),
    ):
        if most is not None and most < row:
            yield f"{name}={most}, but a row has up to {row} tokens"
    if parts.rollout.name == "sglang" and parts.rollout.max_model_len == row:
        yield f"rollout.max_model_len={row}: with SGLang verl cuts the longest reply by a token: {row + 1}"


def _masters(config: Any) -> Iterator[str]:
    """Refuse weights that most steps of the optimizer leave where they are: bfloat16 has 8 bits of them."""
    actor = config.actor_rollout_ref.actor
    if actor.strategy != "megatron" and (dtype := actor.fsdp_config.model_dtype) in ("bf16", "bfloat16"):
        lost = f"steps of lr={actor.optim.lr:g} are mostly rounded away"
        yield f"actor.fsdp_config.model_dtype={dtype}: {lost}. fp32 is sharded, and computes in bfloat16 too"


def _groups(recipe: Composed) -> Iterator[str]:
    config = recipe.config
    rollout, gpus = config.actor_rollout_ref.rollout, config.trainer.nnodes * config.trainer.n_gpus_per_node
    if rollout.n < 2:
        yield "actor_rollout_ref.rollout.n=1: a group of one teaches nothing"
    if config.data.train_batch_size * rollout.n < recipe.settings.updates:
        rollouts = f"{config.data.train_batch_size} × {rollout.n} rollouts"
        yield f"memloop.updates={recipe.settings.updates}, but a batch has {rollouts}"
    actor = config.actor_rollout_ref.actor
    if recipe.settings.live_rows_only and (actor.use_kl_loss or actor.entropy_coeff):
        yield "memloop.live_rows_only leaves out rows that the KL loss and the entropy bonus are about"
    if gpus % rollout.tensor_model_parallel_size:
        yield f"{gpus} GPUs do not divide into engines of {rollout.tensor_model_parallel_size}"
    if recipe.settings.checkpoints and config.actor_rollout_ref.actor.checkpoint.async_save:
        yield "memloop.checkpoints needs whole files: actor.checkpoint.async_save=false"


def _objective(recipe: Composed) -> Iterator[str]:
    """Compare what verl computes with what the objective's publication has."""
    name, config = recipe.settings.objective, recipe.config
    published, actor, groups = PUBLISHED[name], config.actor_rollout_ref.actor, config.algorithm.filter_groups
    if actor.policy_loss.loss_mode != published.loss:
        yield f"{name} has actor.policy_loss.loss_mode={published.loss}, not {actor.policy_loss.loss_mode}"
    if actor.loss_agg_mode not in published.means:
        yield f"{name} has actor.loss_agg_mode={' or '.join(published.means)}, not {actor.loss_agg_mode}"
    if actor.loss_agg_mode == "seq-mean-token-sum-norm" and actor.loss_scale_factor is None:
        yield "actor.loss_scale_factor is missing: the divisor would be each micro-batch's longest reply"
    if published.informative_groups and not groups.enable:
        yield f"{name} replaces groups of equal rewards: algorithm.filter_groups.enable=true"
    if groups.enable:
        yield from _filtered(config, published)


def _filtered(config: Any, published: Published) -> Iterator[str]:
    groups = config.algorithm.filter_groups
    if published.any_group:
        yield "algorithm.filter_groups drops groups of equal rewards, from which this objective learns"
    if groups.metric != METRIC:
        yield f"algorithm.filter_groups.metric={groups.metric}, but rollouts have one reward: {METRIC}"
    if groups.max_num_gen_batches < 1:
        yield "algorithm.filter_groups.max_num_gen_batches=0 lets a step of equal rewards run for ever"
