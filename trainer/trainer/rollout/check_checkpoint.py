"""Compares the checkpoint with the recipe: its files, tokenizer, window, and the profile that it was trained with."""

# omegaconf is largely untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from memloop.chunking import TokenizerSplitter
from memloop.profiles import ProfileError, check_fit
from memloop.wire.checkpoint import RECORD
from trainer.rollout.export_record import ExportError, read_record
from trainer.rollout.recipe import Composed

_HUB_ID: Final = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_REQUIRED: Final = ("config.json", "tokenizer.json", "tokenizer_config.json")
_SHAPE: Final = ("model_type", "hidden_size", "num_hidden_layers", "vocab_size")


def check_checkpoint(recipe: Composed) -> Iterator[str]:
    """Yield every reason why the recipe cannot start from its checkpoint."""
    path = str(recipe.config.actor_rollout_ref.model.path)
    name, folder = f"actor_rollout_ref.model.path={path}", Path(path)
    if not folder.is_dir():
        yield from _elsewhere(name, path, recipe)
    elif missing := [file for file in _REQUIRED if not (folder / file).is_file()]:
        yield f"{name}: the folder has no {', '.join(missing)}"
    elif not any(folder.glob("*.safetensors")):
        yield f"{name}: the folder has no weights (*.safetensors)"
    else:
        yield from _held(name, folder, recipe)


def _elsewhere(name: str, path: str, recipe: Composed) -> Iterator[str]:
    offline = {**os.environ, **recipe.environment}.get("HF_HUB_OFFLINE", "0") not in ("", "0")
    if not _HUB_ID.fullmatch(path):
        yield f"{name}: there is no such folder"
    elif offline and not _cached(path):
        yield f"{name}: neither a folder nor in the hub's cache, and HF_HUB_OFFLINE is set"


def _cached(hub_id: str) -> bool:
    from transformers.utils.hub import cached_file

    try:
        return cached_file(hub_id, "config.json", local_files_only=True) is not None
    except OSError:
        return False


def _held(name: str, folder: Path, recipe: Composed) -> Iterator[str]:
    config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    data: Any = recipe.config.data
    row, window = data.max_prompt_length + data.max_response_length, config.get("max_position_embeddings")
    if window is not None and row > int(window):
        yield f"{name}: its window has {window} tokens, the recipe's rows have up to {row}"
    if recipe.settings.agent is None:
        yield from _prompts(name, folder, recipe)
    yield from _earlier_run(name, config, recipe)


def _prompts(name: str, folder: Path, recipe: Composed) -> Iterator[str]:
    profile = recipe.settings.loaded()
    try:
        check_fit(profile, TokenizerSplitter((folder / "tokenizer.json").read_bytes()), window_tokens=None)
    except ProfileError as error:
        yield f"{name}: {error}"
    try:
        record = read_record(folder) if (folder / RECORD).is_file() else None
    except ExportError as error:
        yield str(error)
        return
    if record is not None and record.profile_hash != profile.content_hash:
        yield f"{name}: it was trained with the profile {record.profile}, the recipe has {profile.ref}"


def _earlier_run(name: str, config: dict[str, Any], recipe: Composed) -> Iterator[str]:
    """A run resumes from its folder's newest checkpoint, which must be of the model that the recipe names."""
    folder = Path(recipe.config.trainer.default_local_dir)
    latest = folder / "latest_checkpointed_iteration.txt"
    if recipe.config.trainer.resume_mode == "disable" or not latest.is_file():
        return
    saved = folder / f"global_step_{latest.read_text('utf-8').strip()}" / "actor" / "huggingface" / "config.json"
    if saved.is_file():
        other: dict[str, Any] = json.loads(saved.read_text("utf-8"))
        if differing := [key for key in _SHAPE if other.get(key) != config.get(key)]:
            sides = ", ".join(f"{key} {other.get(key)} there and {config.get(key)} here" for key in differing)
            yield f"{name}: the run in {folder} is of another model ({sides}): set trainer.default_local_dir"
