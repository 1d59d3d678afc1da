"""Runs a recipe with TRL's ``SFTTrainer``: the loss on replies alone, LoRA or all weights, resumable."""

# TRL, peft and datasets belong to the trainer's own environment and are partly untyped.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false, reportUnknownParameterType=false
from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from datasets import Dataset, Features, List, Value
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer

from trainer.data.parquet import read_parquet
from trainer.sft.examples import Examples
from trainer.sft.recipe import RecipeError, SftRecipe

_CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, slots=True)
class SftResult:
    """A run's results. ``learned_tokens`` are those of one epoch; losses are means over the logged steps."""

    steps: int
    examples: int
    too_long: int
    learned_tokens: int
    first_loss: float
    last_loss: float
    held_out_loss: float | None
    model: str


def fine_tune(recipe: SftRecipe) -> SftResult:
    """Train, and save the whole checkpoint with its tokenizer under ``output``; resumes from the last saved step.

    Raises RecipeError when there are no examples, TemplateError, and OSError for a missing model or file.
    """
    with TemporaryDirectory(prefix="memloop-sft-") as cache:
        return _fine_tune(recipe, Path(cache))


def _fine_tune(recipe: SftRecipe, cache: Path) -> SftResult:
    tokenizer: Any = AutoTokenizer.from_pretrained(recipe.model)
    examples = Examples(tokenizer, max_tokens=recipe.max_tokens)
    train = _dataset(recipe.train, examples, cache)
    too_long = examples.too_long
    held_out = _dataset(recipe.held_out, examples, cache) if recipe.held_out else None
    trainer = SFTTrainer(
        # Weights that are trained stay in float32: in bfloat16 most steps would be rounded away.
        model=_model(recipe.model, half=recipe.precision == "bf16" and recipe.lora is not None),
        args=_arguments(recipe, examples=len(train), evaluates=held_out is not None),
        train_dataset=train,
        eval_dataset=held_out,
        processing_class=tokenizer,
        peft_config=_lora(recipe),
    )
    trainer.train(resume_from_checkpoint=_newest_checkpoint(recipe.output))
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    held_out_loss = trainer.evaluate()["eval_loss"] if held_out is not None else None
    _save(trainer, tokenizer, recipe)
    return SftResult(
        steps=trainer.state.global_step,
        examples=len(train),
        too_long=too_long,
        learned_tokens=sum(sum(mask) for mask in train["completion_mask"]),
        first_loss=losses[0],
        last_loss=losses[-1],
        held_out_loss=held_out_loss,
        model=str(recipe.output),
    )


def _dataset(files: Sequence[Path], examples: Examples, cache: Path) -> Any:
    """Return the examples of the files, on disk: memory does not grow with them. Raises RecipeError without any."""

    def rows() -> Iterator[dict[str, list[int]]]:
        for file in files:
            for row in read_parquet(file):
                for example in examples.of_row(row):
                    yield {"input_ids": example.input_ids, "completion_mask": example.completion_mask}

    if next(rows(), None) is None:
        raise RecipeError(f"nothing to learn: {examples.too_long} examples are longer than max_tokens")
    examples.too_long = 0
    shape = Features({name: List(Value("int32")) for name in ("input_ids", "completion_mask")})
    return Dataset.from_generator(rows, features=shape, cache_dir=str(cache))


def _model(model: str | Path, *, half: bool) -> Any:
    models: Any = AutoModelForCausalLM
    return models.from_pretrained(model, dtype=torch.bfloat16 if half else torch.float32)


def _lora(recipe: SftRecipe) -> Any:
    lora = recipe.lora
    if lora is None:
        return None
    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=targets,
        task_type="CAUSAL_LM",
    )


def _arguments(recipe: SftRecipe, *, examples: int, evaluates: bool) -> Any:
    # To Hugging Face a number of steps replaces the epochs; so it is given only where it is the smaller.
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    steps_per_epoch = ceil(ceil(ceil(examples / recipe.per_device) / processes) / (recipe.batch // recipe.per_device))
    ends_early = recipe.steps is not None and recipe.steps < ceil(recipe.epochs * steps_per_epoch)
    return SFTConfig(
        output_dir=str(recipe.output / _CHECKPOINTS),
        learning_rate=recipe.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=recipe.warmup_share,  # below 1 it is a share of all steps
        weight_decay=recipe.weight_decay,
        num_train_epochs=recipe.epochs,
        max_steps=recipe.steps if ends_early else -1,
        per_device_train_batch_size=recipe.per_device,
        per_device_eval_batch_size=recipe.per_device,
        gradient_accumulation_steps=recipe.batch // recipe.per_device,
        gradient_checkpointing=recipe.checkpointing,
        bf16=recipe.precision == "bf16",
        use_cpu=not torch.cuda.is_available(),
        max_length=None,
        packing=False,
        completion_only_loss=True,
        logging_steps=1,
        save_steps=recipe.save_steps,
        save_total_limit=2,
        eval_strategy="no",
        do_eval=evaluates,
        seed=recipe.seed,
        fsdp=recipe.fsdp,
        report_to=recipe.report_to,
    )


def _newest_checkpoint(output: Path) -> str | None:
    """Return the newest checkpoint that a kill did not interrupt: the trainer's state is its last file."""
    found = (output / _CHECKPOINTS).glob("checkpoint-*/trainer_state.json")
    for state in sorted(found, key=lambda file: int(file.parent.name.rpartition("-")[2]), reverse=True):
        with suppress(ValueError):
            json.loads(state.read_text("utf-8"))
            return str(state.parent)
    return None


def _save(trainer: Any, tokenizer: Any, recipe: SftRecipe) -> None:
    """Save whole weights in the recipe's precision, with adapters merged, for inference and RL."""
    if recipe.lora is not None:
        merged = trainer.accelerator.unwrap_model(trainer.model).merge_and_unload()
        if trainer.is_world_process_zero():
            merged.save_pretrained(recipe.output)
    else:
        masters = recipe.output / _CHECKPOINTS / "masters"
        trainer.save_model(str(masters))  # every process has a part of them
        if trainer.is_world_process_zero():
            _model(masters, half=recipe.precision == "bf16").save_pretrained(recipe.output)
            shutil.rmtree(masters)
    if trainer.is_world_process_zero():
        tokenizer.save_pretrained(recipe.output)
