"""verl's own pass over padded rows: with fused kernels it keeps no logits, and its log-probabilities are the same."""

# torch's annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tensordict import TensorDict
from transformers import Qwen3Config, Qwen3ForCausalLM
from verl.models.transformers.monkey_patch import apply_monkey_patch
from verl.utils import tensordict_utils
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

from trainer.rollout.recipe import load_recipe

SEVEN_B = Path("trainer/recipes/memagent-7b.yaml")
LENGTHS, WORDS = (320, 192), 4096


def rows(*, fused: bool) -> TensorDict:
    random = torch.Generator().manual_seed(0)
    tokens = [torch.randint(WORDS, (length,), generator=random) for length in LENGTHS]
    places = [torch.arange(length) for length in LENGTHS]
    fields = {"input_ids": tokens, "position_ids": places}
    batch = TensorDict(
        {name: torch.nested.nested_tensor(held, layout=torch.jagged) for name, held in fields.items()},
        batch_size=[len(LENGTHS)],
    )
    facts = {"use_remove_padding": False, "use_fused_kernels": fused, "calculate_entropy": True, "temperature": 1.0}
    for name, value in facts.items():
        tensordict_utils.assign_non_tensor(batch, **{name: value})
    return batch


def passed(*, fused: bool, backend: str) -> tuple[torch.Tensor, torch.Tensor, int]:
    """The rows' log-probabilities, the output layer's gradient, and the largest tensor kept for the backward pass."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "head_dim": 32}
    heads: dict[str, Any] = {"num_attention_heads": 2, "num_key_value_heads": 1, "attn_implementation": "sdpa"}
    model: Any = Qwen3ForCausalLM(Qwen3Config(vocab_size=WORDS, tie_word_embeddings=False, **shape, **heads))
    forward = Qwen3ForCausalLM.forward
    try:
        apply_monkey_patch(model, use_remove_padding=False, use_fused_kernels=fused, fused_kernels_backend=backend)
        engine: Any = FSDPEngineWithLMHead.__new__(FSDPEngineWithLMHead)  # without its processes and weights
        engine.engine_config = SimpleNamespace(entropy_checkpointing=False)
        engine.pad_to_length = None
        engine.ulysses_sequence_parallel_size = 1
        kept = list[int]()

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            kept.append(tensor.numel())
            return tensor

        batch = rows(fused=fused)
        inputs, arguments = engine.prepare_model_inputs(batch)
        watched = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
        with watched:
            output = engine.prepare_model_outputs(model(**inputs, use_cache=False), arguments, batch, None)
        learned = [row[:-1] for row in output["log_probs"].unbind()]  # nothing follows a row's last token
        log_probs = torch.cat(learned)
        (log_probs * torch.linspace(-1, 1, len(log_probs))).sum().backward()
    finally:
        Qwen3ForCausalLM.forward = forward  # verl patches the class
    return log_probs.detach(), model.lm_head.weight.grad, max(kept)


def test_rows_of_a_recipe_keep_no_logits_for_the_backward_pass() -> None:
    policy: Any = load_recipe(SEVEN_B).config.actor_rollout_ref.model
    assert not policy.use_remove_padding
    backend = policy.fused_kernel_options.impl_backend
    whole = passed(fused=False, backend=backend)
    own = passed(fused=policy.use_fused_kernels, backend=backend)
    padded = max(LENGTHS) * len(LENGTHS) * WORDS
    print(f"largest tensor kept, of {padded} padded logits: {whole[2]} whole, {own[2]} by the recipe")
    assert whole[2] >= padded
    assert own[2] < padded / 4
    difference = float((own[0] - whole[0]).abs().max()), float((own[1] - whole[1]).norm() / whole[1].norm())
    print(f"log-probabilities differ by {difference[0]:.4f}, the gradient by {difference[1]:.4f}")
    assert difference == pytest.approx((0, 0), abs=1e-4)
