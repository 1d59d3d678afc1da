"""A random Llama of the small model's architecture, as a folder that transformers reads."""

# torch's and transformers' own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportAttributeAccessIssue=false
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

TOKENIZER = Path("services/inference/models/memloop-tiny")
"""Its chat template is ChatML, as the base's."""


def random_llama(folder: Path) -> Path:
    """Write a random Llama of two layers in float32 with a real tokenizer, and return its folder."""
    torch.manual_seed(1)
    tokenizer: Any = AutoTokenizer.from_pretrained(TOKENIZER)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=8,
        tie_word_embeddings=True,
        max_position_embeddings=2048,
    )
    model: Any = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copyfile(TOKENIZER / name, folder / name)
    return folder
