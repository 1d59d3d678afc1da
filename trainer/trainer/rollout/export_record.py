"""What an export says of itself (:class:`memloop.wire.checkpoint.CheckpointRecord`), and how that is checked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from memloop.profiles import Profile
from memloop.wire.checkpoint import RECORD, CheckpointRecord

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
"""What turns messages into tokens and ends a reply: copied byte for byte from where training started."""
_BLOCK = 1 << 20


class ExportError(ValueError):
    """A checkpoint that cannot be exported, or that is no export; the message says why."""


def read_record(folder: Path) -> CheckpointRecord:
    """The record of an export. Raises ExportError when the folder is none."""
    try:
        return CheckpointRecord.model_validate_json((folder / RECORD).read_bytes())
    except OSError as error:
        raise ExportError(
            f"{folder} is no export: it has no {RECORD} (`python -m trainer export` makes one)"
        ) from error
    except ValidationError as error:
        names = ", ".join(sorted({str(fault["loc"][0]) for fault in error.errors() if fault["loc"]})) or "no JSON"
        raise ExportError(f"{folder / RECORD} is no record of an export ({names}): export again") from error


def weights_sha256(folder: Path) -> str:
    """Of all safetensors files, one after another by name. Raises ExportError when there are none."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ExportError(f"{folder} holds no weights (*.safetensors)")
    return _digest(files)


def tokenizer_sha256(folder: Path) -> str:
    """Of those of ``TOKENIZER_FILES`` that are there."""
    return _digest(file for name in TOKENIZER_FILES if (file := folder / name).is_file())


def tools_sha256(profile: Profile) -> str:
    """Of the tools that the profile's prompts send."""
    tools = "".join(repr(spec.tools) for spec in profile.prompts.values() if spec.tools)
    return hashlib.sha256(tools.encode()).hexdigest()


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
