"""Published architectures with random weights: a folder that the launcher serves with ``--load-format dummy``.

Source: the ``config.json`` of Qwen/Qwen3-4B, Qwen/Qwen2.5-7B-Instruct and Qwen/Qwen2.5-14B-Instruct. The tokenizer is
the tiny model's, a stand-in, filled up to the published vocabulary: prompts are token IDs, and random weights reply
with any ID.
"""

import shutil
from pathlib import Path

import orjson

from memloop.wire.chat import Json

_TOKENIZER = Path("services/inference/models/memloop-tiny")
_TOKENIZER_FILES = ("tokenizer_config.json", "chat_template.jinja")
_EVERY: Json = {
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000.0,
    "attention_dropout": 0.0,
    "initializer_range": 0.02,
    "use_sliding_window": False,
    "use_cache": True,
    "torch_dtype": "bfloat16",
    "eos_token_id": 2,
}
_QWEN2: Json = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "tie_word_embeddings": False}
_QWEN3: Json = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "tie_word_embeddings": True}
SHAPES: dict[str, Json] = {
    "qwen3-4b": _EVERY
    | _QWEN3
    | {
        "hidden_size": 2560,
        "intermediate_size": 9728,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "attention_bias": False,
        "max_position_embeddings": 40_960,
        "vocab_size": 151_936,
    },
    "qwen2.5-7b": _EVERY
    | _QWEN2
    | {
        "hidden_size": 3584,
        "intermediate_size": 18_944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "max_position_embeddings": 32_768,
        "vocab_size": 152_064,
    },
    "qwen2.5-14b": _EVERY
    | _QWEN2
    | {
        "hidden_size": 5120,
        "intermediate_size": 13_824,
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "max_position_embeddings": 32_768,
        "vocab_size": 152_064,
    },
}


def write_shape(shape: str, folder: Path) -> Path:
    """Write a folder with the shape's config and the stand-in tokenizer, without weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_bytes(orjson.dumps(SHAPES[shape], option=orjson.OPT_INDENT_2))
    for name in _TOKENIZER_FILES:
        shutil.copyfile(_TOKENIZER / name, folder / name)
    (folder / "tokenizer.json").write_bytes(_filled(int(str(SHAPES[shape]["vocab_size"]))))
    return folder


def _filled(size: int) -> bytes:
    """Return the stand-in with a text for every ID, as a published one has.

    An engine decodes a reply step by step; while IDs have no text, each step decodes prompt and reply from the start.
    """
    tokenizer = orjson.loads((_TOKENIZER / "tokenizer.json").read_bytes())
    vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
    taken = {*vocabulary.values(), *(token["id"] for token in tokenizer["added_tokens"])}
    vocabulary |= {f"<{number}>": number for number in range(size) if number not in taken}
    return orjson.dumps(tokenizer)


def engine_settings(shape: str, folder: Path, *, documents: int) -> dict[str, str]:
    """Return the launcher's variables: random weights, capacity for all documents and for the profile's window."""
    return {
        "MEMLOOP_MODEL": str(folder),
        "MEMLOOP_SERVE_NAME": shape,
        "MEMLOOP_SERVE_LOAD_FORMAT": "dummy",
        "MEMLOOP_SERVE_DTYPE": "bfloat16",
        "MEMLOOP_SERVE_MAX_MODEL_LEN": "16384",
        "MEMLOOP_SERVE_MAX_NUM_SEQS": str(documents),
        "MEMLOOP_SERVE_TOOL_CALL_PARSER": "hermes",  # the launcher's warm-up calls the profile's tools
    }
