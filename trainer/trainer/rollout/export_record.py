"""Writes and checks an export's record (:class:`memloop.wire.checkpoint.CheckpointRecord`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from memloop.profiles import Profile
from memloop.wire.checkpoint import RECORD, CheckpointRecord

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json")
"""The files that turn messages into tokens and end a reply: copied byte for byte from the start of training."""
_BLOCK = 1 << 20


class ExportError(ValueError):
    """The checkpoint cannot be exported, or the folder is not an export; the message holds the reason."""


def read_record(folder: Path) -> CheckpointRecord:
    """Read the record of an export. Raises ExportError for any other folder."""
    try:
        return CheckpointRecord.model_validate_json((folder / RECORD).read_bytes())
    except OSError as error:
        raise ExportError(
            f"{folder} is not an export: it has no {RECORD} (`python -m trainer export` makes one)"
        ) from error
    except ValidationError as error:
        names = ", ".join(sorted({str(fault["loc"][0]) for fault in error.errors() if fault["loc"]})) or "no JSON"
        raise ExportError(f"{folder / RECORD} is not a record of an export ({names}): export again") from error


def weights_sha256(folder: Path) -> str:
    """Hash all safetensors files in the order of their names. Raises ExportError when there are none."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ExportError(f"{folder} holds no weights (*.safetensors)")
    return _digest(files)


def tokenizer_sha256(folder: Path) -> str:
    """Hash the existing files of ``TOKENIZER_FILES``."""
    return _digest(file for name in TOKENIZER_FILES if (file := folder / name).is_file())


def tools_sha256(profile: Profile) -> str:
    """Hash the tools of the profile's prompts."""
    tools = "".join(repr(spec.tools) for spec in profile.prompts.values() if spec.tools)
    return hashlib.sha256(tools.encode()).hexdigest()


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
