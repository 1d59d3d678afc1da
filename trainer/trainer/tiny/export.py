"""Writes a checkpoint folder in the standard Hugging Face files."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from trainer.tiny.chat_format import TEMPLATE
from trainer.tiny.network import Shape
from trainer.tiny.tokenizer import END, PAD, token_id

_WEIGHTS = "model.safetensors"
_TOKENIZER = "tokenizer.json"


def export(folder: Path, weights: dict[str, Tensor], shape: Shape, tokenizer: Tokenizer) -> None:
    """Write config, weights (bfloat16), tokenizer and chat template into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    end, pad = token_id(tokenizer, END), token_id(tokenizer, PAD)
    tensors = {name: tensor.detach().to("cpu", torch.bfloat16).contiguous() for name, tensor in weights.items()}
    save_file(tensors, folder / _WEIGHTS, metadata={"format": "pt"})
    (folder / _WEIGHTS).chmod(0o644)
    tokenizer.save(str(folder / _TOKENIZER))
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    _write(folder / "config.json", model_config(shape, end=end, pad=pad))
    _write(folder / "generation_config.json", {"do_sample": False, "eos_token_id": [end, pad], "pad_token_id": pad})
    _write(folder / "tokenizer_config.json", tokenizer_config(shape))


def weights_of(folder: Path) -> dict[str, Tensor]:
    """Read the weights of a checkpoint that `export` wrote, in float32."""
    return {name: tensor.float() for name, tensor in load_file(folder / _WEIGHTS).items()}


def tokenizer_of(folder: Path) -> Tokenizer:
    """Read the tokenizer of a checkpoint that `export` wrote."""
    return Tokenizer.from_file(str(folder / _TOKENIZER))


def model_config(shape: Shape, *, end: int, pad: int) -> dict[str, object]:
    """Return the `config.json` of a Qwen3ForCausalLM of this shape."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "dtype": "bfloat16",
        "eos_token_id": end,
        "pad_token_id": pad,
        "bos_token_id": None,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "initializer_range": 0.02,
        "intermediate_size": shape.intermediate,
        "layer_types": ["full_attention"] * shape.layers,
        "max_position_embeddings": shape.positions,
        "max_window_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.heads,
        "rms_norm_eps": shape.norm_eps,
        "rope_parameters": {"rope_theta": shape.rope_theta, "rope_type": "default"},
        "rope_theta": shape.rope_theta,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": shape.vocab,
    }


def tokenizer_config(shape: Shape) -> dict[str, object]:
    """Return the `tokenizer_config.json` of a plain fast tokenizer."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": PAD,
        "bos_token": None,
        "unk_token": None,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": shape.positions,
        "extra_special_tokens": {},
    }


def _write(path: Path, data: dict[str, object]) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
