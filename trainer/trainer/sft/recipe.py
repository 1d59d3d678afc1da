"""Reads a recipe of supervised fine-tuning: a YAML file with known keys only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator


class RecipeError(ValueError):
    """The recipe cannot be run; the message names the file and the reason."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Lora(_Strict):
    """Low-rank adapters (arXiv 2106.09685). They are merged into the saved checkpoint."""

    rank: int = Field(default=32, ge=1)
    alpha: int = Field(default=64, ge=1)
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    targets: str | tuple[str, ...] = "all-linear"


class SftRecipe(_Strict):
    """The model, data and settings of a run. Without ``lora`` all weights are trained.

    ``batch`` counts examples of one optimizer step on one process, ``per_device`` of one pass. The run ends with
    ``steps`` or ``epochs``, the earlier of the two; the learning rate reaches zero there. ``fsdp`` is Hugging Face's
    option (``full_shard auto_wrap``), for runs started by ``torchrun``.
    """

    model: str
    train: tuple[Path, ...] = Field(min_length=1)
    held_out: tuple[Path, ...] = ()
    output: Path
    lora: Lora | None = None
    learning_rate: float = Field(default=1e-5, gt=0)
    warmup_share: float = Field(default=0.03, ge=0, lt=1)
    weight_decay: float = Field(default=0.0, ge=0)
    epochs: float = Field(default=1.0, gt=0)
    steps: int | None = Field(default=None, ge=1)
    batch: int = Field(default=64, ge=1)
    per_device: int = Field(default=1, ge=1)
    max_tokens: int = Field(default=8192, ge=16)
    precision: Literal["bf16", "fp32"] = "bf16"
    checkpointing: bool = True
    save_steps: int = Field(default=200, ge=1)
    seed: int = 0
    fsdp: str = ""
    report_to: Literal["none", "tensorboard", "mlflow", "wandb"] = "none"

    @model_validator(mode="after")
    def _whole_passes(self) -> Self:
        if self.batch % self.per_device:
            raise ValueError("batch must be a multiple of per_device")
        return self


def load_sft_recipe(file: Path, overrides: tuple[str, ...] = ()) -> SftRecipe:
    """Load the recipe with ``KEY=VALUE`` overrides (``lora.rank=8``, ``steps=4``). Raises RecipeError."""
    try:
        fields: object = yaml.safe_load(file.read_text("utf-8"))
        if not isinstance(fields, dict):
            raise RecipeError(f"{file}: no recipe")
        held = cast(dict[str, Any], fields)
        for override in overrides:
            _take_over(held, override)
        return SftRecipe.model_validate(held)
    except (OSError, yaml.YAMLError) as error:
        raise RecipeError(f"{file}: {error}") from error
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, fault['loc'])) or 'recipe'}: {fault['msg']}" for fault in error.errors())
        raise RecipeError(f"{file}: {'; '.join(faults)}") from error


def _take_over(fields: dict[str, Any], override: str) -> None:
    path, mark, value = override.partition("=")
    if not mark:
        raise RecipeError(f"{override}: give KEY=VALUE")
    *folders, name = path.split(".")
    for folder in folders:
        held: object = fields.get(folder)
        if held is None:
            held = fields[folder] = dict[str, Any]()
        if not isinstance(held, dict):
            raise RecipeError(f"{override}: {folder} is a value without keys")
        fields = cast(dict[str, Any], held)
    fields[name] = yaml.safe_load(value)
