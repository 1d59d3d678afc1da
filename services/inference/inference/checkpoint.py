"""What the served checkpoint says of itself."""

import logging
from pathlib import Path

from pydantic import ValidationError

from memloop.wire.checkpoint import RECORD, CheckpointRecord

log = logging.getLogger(__name__)


def read_record(folder: Path) -> CheckpointRecord | None:
    """The folder's ``export.json``; None, and a warning, when it is none. No hash in it is checked."""
    try:
        return CheckpointRecord.model_validate_json((folder / RECORD).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        log.warning("%s cannot be read: %s", folder / RECORD, error)
        return None
