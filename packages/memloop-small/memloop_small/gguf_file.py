"""Writes the merged weights as a GGUF file again, in eight bits: engines without torch read it."""

# gguf's own annotations are partly unknown to pyright.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from memloop_small.base import interleaved, safetensors_name


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
