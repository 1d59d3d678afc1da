"""A checkpoint of a run as Hugging Face files that inference serves.

verl's merger joins the shards and writes bfloat16. Tokenizer, chat template and generation settings are copied byte for
byte from the checkpoint that training started from: verl's own copies are written anew by transformers, and the policy
was trained on prompts of the original ones.
"""

# verl is untyped in large part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from pydantic import BaseModel

from memloop.chunking import TokenizerSplitter
from memloop.profiles import Profile, check_fit

RECORD = "export.json"
DTYPE = "bfloat16"
_COPIED = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
_REQUIRED = ("tokenizer.json", "config.json")


class ExportError(ValueError):
    """A checkpoint that cannot be exported; the message says why."""


class ExportRecord(BaseModel):
    """Beside the weights: where they come from, and which prompts they were trained on."""

    started_from: str
    step: int
    dtype: str
    profile: str
    profile_hash: str
    tools_hash: str
    weights_sha256: str


def export_checkpoint(checkpoint: Path, base: Path, out: Path, profile: Profile) -> ExportRecord:
    """Merge ``checkpoint`` (a ``global_step_N`` folder) into ``out``; training started from the folder ``base``.

    Raises ExportError when a folder is not what it should be, or ``out`` exists; ProfileError when the profile does not
    fit the tokenizer.
    """
    step = _step_of(checkpoint)
    missing = [name for name in _REQUIRED if not (base / name).is_file()]
    if missing:
        raise ExportError(f"{base} has no {', '.join(missing)}: is it the checkpoint that training started from?")
    if out.exists():
        raise ExportError(f"{out} exists already: an export does not overwrite")
    check_fit(profile, TokenizerSplitter((base / "tokenizer.json").read_bytes()), window_tokens=None)
    unfinished = out.with_name(f".{out.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        _merge(checkpoint / "actor", unfinished)
        for name in _COPIED:
            if (base / name).is_file():
                shutil.copyfile(base / name, unfinished / name)
        _describe(base, unfinished)
        record = _record(unfinished, base, step, profile)
        (unfinished / RECORD).write_text(record.model_dump_json(indent=2) + "\n", "utf-8")
        unfinished.rename(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return record


def _step_of(checkpoint: Path) -> int:
    _, mark, step = checkpoint.name.partition("global_step_")
    if not mark or not step.isdigit() or not (checkpoint / "actor" / "huggingface").is_dir():
        raise ExportError(f"{checkpoint} is no checkpoint of a run (global_step_N, with actor/huggingface in it)")
    return int(step)


def _merge(actor: Path, out: Path) -> None:
    from verl.model_merger.base_model_merger import ModelMergerConfig
    from verl.model_merger.fsdp_model_merger import FSDPModelMerger

    out.mkdir(parents=True)
    merger = FSDPModelMerger(
        ModelMergerConfig(
            operation="merge",
            backend="fsdp",
            local_dir=str(actor),
            hf_model_config_path=str(actor / "huggingface"),
            target_dir=str(out),
        )
    )
    merger.merge_and_save()


def _describe(base: Path, out: Path) -> None:
    """The base's config.json, with the type of the merged weights; these become readable for the serving user."""
    config = json.loads((base / "config.json").read_text("utf-8"))
    (out / "config.json").write_text(json.dumps(config | {"dtype": DTYPE}, indent=2) + "\n", "utf-8")
    for file in out.glob("*.safetensors"):
        file.chmod(0o644)


def _record(folder: Path, base: Path, step: int, profile: Profile) -> ExportRecord:
    tools = "".join(repr(spec.tools) for spec in profile.prompts.values() if spec.tools)
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise ExportError("the merger wrote no weights")
    digest = hashlib.sha256()
    for file in weights:
        digest.update(file.read_bytes())
    return ExportRecord(
        started_from=base.name,
        step=step,
        dtype=DTYPE,
        profile=profile.ref,
        profile_hash=profile.content_hash,
        tools_hash=hashlib.sha256(tools.encode()).hexdigest(),
        weights_sha256=digest.hexdigest(),
    )
