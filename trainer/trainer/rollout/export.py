"""Exports a checkpoint of a run as Hugging Face files that inference serves.

verl's merger joins the shards and writes bfloat16. Adapters are merged, and the result is loaded back and compared
(:mod:`trainer.rollout.export_weights`). Tokenizer, chat template and generation settings are copied byte for
byte from the checkpoint that training started from: verl's own copies are rewritten by transformers, and the policy was
trained on prompts of the original ones.
"""

# verl is largely untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
from __future__ import annotations

import json
import shutil
from pathlib import Path

from memloop.chunking import TokenizerSplitter
from memloop.profiles import Profile, check_fit
from memloop.wire.checkpoint import RECORD, CheckpointRecord, TrainedBy
from trainer.rollout.export_record import (
    TOKENIZER_FILES,
    ExportError,
    tokenizer_sha256,
    tools_sha256,
    weights_sha256,
)
from trainer.rollout.export_weights import load_back, merge_adapter, shard

DTYPE = "bfloat16"
_REQUIRED = ("tokenizer.json", "config.json")


def export_checkpoint(
    checkpoint: Path, base: Path, out: Path, profile: Profile, *, trained_by: TrainedBy | None = None
) -> CheckpointRecord:
    """Merge ``checkpoint`` (a ``global_step_N`` folder) into ``out``; training started from the folder ``base``.

    Raises ExportError when a folder is invalid or ``out`` exists; ProfileError when the profile does not fit the
    tokenizer.
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
        for name in TOKENIZER_FILES:
            if (base / name).is_file():
                shutil.copyfile(base / name, unfinished / name)
        _describe(base, unfinished)
        if not merge_adapter(unfinished):
            shard(unfinished)
        load_back(unfinished)
        _readable(unfinished)
        record = CheckpointRecord(
            started_from=base.name,
            step=step,
            dtype=DTYPE,
            profile=profile.ref,
            profile_hash=profile.content_hash,
            tools_hash=tools_sha256(profile),
            tokenizer_sha256=tokenizer_sha256(base),
            weights_sha256=weights_sha256(unfinished),
            trained_by=trained_by,
        )
        (unfinished / RECORD).write_text(record.model_dump_json(indent=2) + "\n", "utf-8")
        unfinished.rename(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return record


def _step_of(checkpoint: Path) -> int:
    _, mark, step = checkpoint.name.partition("global_step_")
    if not mark or not step.isdigit() or not (checkpoint / "actor" / "huggingface").is_dir():
        raise ExportError(f"{checkpoint} is not a checkpoint of a run (global_step_N, with actor/huggingface in it)")
    if not (checkpoint / "actor" / "fsdp_config.json").is_file():
        raise ExportError(
            f"{checkpoint} is not an FSDP checkpoint. Convert Megatron's where megatron-core is installed: "
            "python -m verl.model_merger merge --backend megatron"
        )
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
    """Write config.json with the type of the merged weights."""
    config = json.loads((base / "config.json").read_text("utf-8"))
    (out / "config.json").write_text(json.dumps(config | {"dtype": DTYPE}, indent=2) + "\n", "utf-8")


def _readable(out: Path) -> None:
    """Make the weights readable for the serving user."""
    for file in out.glob("*.safetensors"):
        file.chmod(0o644)
