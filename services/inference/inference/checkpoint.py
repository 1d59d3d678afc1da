"""Reads what a served checkpoint's folder holds beside its weights' numbers: its export record, its GGUF files."""

import logging
from pathlib import Path

from pydantic import ValidationError

from memloop.wire.checkpoint import RECORD, CheckpointRecord

log = logging.getLogger(__name__)


def gguf_files(folder: Path) -> list[Path]:
    """Return the files with weights in GGUF's format that a folder holds."""
    return sorted(folder.glob("*.gguf"))


def read_record(folder: Path) -> CheckpointRecord | None:
    """Return the folder's ``export.json``, or None with a warning when it is invalid. Hashes are not verified."""
    try:
        return CheckpointRecord.model_validate_json((folder / RECORD).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        log.warning("%s cannot be read: %s", folder / RECORD, error)
        return None
