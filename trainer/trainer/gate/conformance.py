"""Checks that the candidate matches its record: its files, the served checkpoint, and the engine.

Each check returns reasons against the candidate; an empty list passes. Errors are raised only when a check cannot run.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memloop.profiles import Profile, ProfileError, load_profile
from memloop.wire.checkpoint import CheckpointRecord
from memloop_clients import InferenceClient, ServedModel
from trainer.rollout.export_record import ExportError, tokenizer_sha256, tools_sha256, weights_sha256

_ENGINE_CHECK = "memloop-inference"
_SHOWN = 12


def check_files(folder: Path, record: CheckpointRecord, profile: str) -> list[str]:
    """Check weights, tokenizer and profile (a name or a folder) against the export and the training."""
    return [*_wrong_files(folder, record), *_wrong_profile(record, profile)]


def _wrong_files(folder: Path, record: CheckpointRecord) -> Iterator[str]:
    try:
        if weights_sha256(folder) != record.weights_sha256:
            yield "the weights differ from the exported ones"
    except (ExportError, OSError) as error:
        yield str(error)
    if not (folder / "config.json").is_file():
        yield f"{folder} has no config.json"
    if tokenizer_sha256(folder) != record.tokenizer_sha256:
        yield f"the tokenizer's files or the chat template differ from those of {record.started_from}"


def _wrong_profile(record: CheckpointRecord, profile: str) -> Iterator[str]:
    try:
        found = load_profile(profile)
    except ProfileError as error:
        yield f"{error}: name it with --profile"
        return
    if found.content_hash != record.profile_hash:
        yield f"it was trained with the profile {record.profile}, and {profile} is {found.ref}"
    elif tools_sha256(found) != record.tools_hash:
        yield "the tool schema differs from the one of its training"


@dataclass(frozen=True, slots=True)
class Served:
    """The launcher's description of the served model."""

    model: ServedModel
    profile: Profile
    tokenizer: bytes


async def look_at(launcher: InferenceClient) -> Served:
    """Query the launcher. Raises DependencyError or ProfileError without an answer."""
    return Served(await launcher.model(), await launcher.profile(), await launcher.tokenizer())


def check_served(folder: Path, record: CheckpointRecord, served: Served, *, gateway_profile: str) -> list[str]:
    """Check that the launcher serves exactly this checkpoint and profile, and that the gateway uses the profile."""
    return [*_wrong_model(folder, record, served), *_wrong_prompts(record, served, gateway_profile)]


def _wrong_model(folder: Path, record: CheckpointRecord, served: Served) -> Iterator[str]:
    served_record = served.model.checkpoint
    if served_record is None:
        yield f"the launcher serves {served.model.id}, which has no export.json: it is another checkpoint"
    elif served_record != record:
        at = f"step {served_record.step}, weights {served_record.weights_sha256[:_SHOWN]}"
        yield f"the launcher serves another checkpoint: {served_record.started_from}, {at}"
    if served.tokenizer != (folder / "tokenizer.json").read_bytes():
        yield "the launcher serves another tokenizer.json"


def _wrong_prompts(record: CheckpointRecord, served: Served, gateway_profile: str) -> Iterator[str]:
    if served.profile.content_hash != record.profile_hash:
        yield f"the launcher serves the profile {served.profile.ref}, and it was trained with {record.profile}"
    if tools_sha256(served.profile) != record.tools_hash:
        yield "the served tool schema differs from the one of its training"
    if gateway_profile != record.profile:
        yield f"the gateway asks with the profile {gateway_profile}, and it was trained with {record.profile}"


async def check_engine(served: Served, log: Path) -> list[str]:
    """Run inference's own checks of the engine; their table goes into ``log``."""
    program = shutil.which(_ENGINE_CHECK, path=str(Path(sys.executable).parent)) or shutil.which(_ENGINE_CHECK)
    if program is None:
        return [f"{_ENGINE_CHECK} is not installed here: the engine cannot be checked"]
    where = ("--engine-url", served.model.engine_url, "--model", served.model.id)
    with log.open("wb") as output:
        check = await asyncio.create_subprocess_exec(program, "conformance", *where, stdout=output, stderr=output)
        try:
            status = await check.wait()
        finally:
            if check.returncode is None:
                check.terminate()
                await check.wait()
    return [] if status == 0 else _failed_rows(log)


def _failed_rows(log: Path) -> list[str]:
    lines = log.read_text("utf-8", "replace").splitlines() or ["it printed nothing"]
    failed = [line for line in lines if line.startswith("FAILED")] or lines[-1:]
    return [f"the engine does not conform: {' '.join(line.split())}" for line in failed]
