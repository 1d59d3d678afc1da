"""Reads the export record of a served checkpoint."""

import logging
from pathlib import Path

from pydantic import ValidationError

from memloop.wire.checkpoint import RECORD, CheckpointRecord

log = logging.getLogger(__name__)


def read_record(folder: Path) -> CheckpointRecord | None:
    """Return the folder's ``export.json``, or None with a warning when it is invalid. Hashes are not verified."""
    try:
        return CheckpointRecord.model_validate_json((folder / RECORD).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        log.warning("%s cannot be read: %s", folder / RECORD, error)
        return None
