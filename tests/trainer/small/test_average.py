"""The mean of adapters: half of what one run changed, in the type that is shipped."""

# safetensors' own annotations are partly unknown to pyright.
# pyright: reportUnknownVariableType=false

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from trainer.small.average import average

LAYER = "base_model.model.layers.0.lora_A.weight"


def adapter(file: Path, value: float, name: str = LAYER) -> Path:
    save_file({name: torch.full((2, 3), value)}, file)
    return file


def test_the_mean_of_two_adapters_lies_between_them(tmp_path: Path) -> None:
    average([adapter(tmp_path / "a", 1.0), adapter(tmp_path / "b", 4.0)], tmp_path / "mean")
    mean = load_file(tmp_path / "mean")
    assert (list(mean), mean[LAYER].dtype) == ([LAYER], torch.bfloat16)
    assert torch.equal(mean[LAYER].float(), torch.full((2, 3), 2.5))


def test_an_adapter_of_other_layers_is_refused_by_name(tmp_path: Path) -> None:
    others = adapter(tmp_path / "others", 1.0, "base_model.model.layers.1.lora_A.weight")
    with pytest.raises(ValueError, match="others has other layers"):
        average([adapter(tmp_path / "a", 1.0), others], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()
