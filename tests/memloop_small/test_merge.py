"""The sum of base and adapter without torch has the bits that torch gives."""

# torch's own annotations are partly unknown to pyright.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from memloop_small.merge import LoraShape, merge

NAME = "model.layers.0.mlp.down_proj"


def parts(folder: Path, *, rank: int = 16) -> dict[str, torch.Tensor]:
    """Write a base of one matrix and an adapter of it, both in bfloat16, and return their tensors."""
    generator = torch.Generator().manual_seed(3)
    shapes = {"weight": (96, 64), "lora_A.weight": (rank, 64), "lora_B.weight": (96, rank)}
    made = {name: torch.randn(shape, generator=generator).to(torch.bfloat16) for name, shape in shapes.items()}
    save_file({f"{NAME}.weight": made["weight"]}, folder / "model.safetensors", metadata={"format": "pt"})
    learned = {f"base_model.model.{NAME}.{name}": made[name] for name in ("lora_A.weight", "lora_B.weight")}
    save_file(learned, folder / "adapter.safetensors")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text("{}")
    return made


def test_numpy_and_torch_add_an_adapter_to_the_same_bits(tmp_path: Path) -> None:
    made = parts(tmp_path)
    total = made["weight"].float()
    for rank in range(16):
        total += torch.outer(made["lora_B.weight"].float()[:, rank] * 2, made["lora_A.weight"].float()[rank])

    merge(tmp_path, tmp_path / "adapter.safetensors", tmp_path / "merged")

    assert torch.equal(load_file(tmp_path / "merged" / "model.safetensors")[f"{NAME}.weight"], total.to(torch.bfloat16))
    save_file({f"{NAME}.weight": total.to(torch.bfloat16)}, tmp_path / "theirs", metadata={"format": "pt"})
    assert (tmp_path / "merged" / "model.safetensors").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_the_rank_and_scale_are_those_that_were_trained(tmp_path: Path) -> None:
    parts(tmp_path, rank=8)
    with pytest.raises(ValueError, match="does not fit"):
        merge(tmp_path, tmp_path / "adapter.safetensors", tmp_path / "merged")
    merge(tmp_path, tmp_path / "adapter.safetensors", tmp_path / "merged", LoraShape(rank=8))
