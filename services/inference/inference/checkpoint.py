"""Finds what a served checkpoint holds beside its weights' numbers: configuration, record, GGUF files, tokenizer."""

import asyncio
import json
import logging
from pathlib import Path
from typing import cast

from huggingface_hub import try_to_load_from_cache
from pydantic import JsonValue, ValidationError

from memloop.wire.chat import Json
from memloop.wire.checkpoint import RECORD, CheckpointRecord
from memloop.wire.errors import NotFound

_TOKENIZER = "tokenizer.json"
log = logging.getLogger(__name__)


def config_of(folder: Path, name: str = "config.json") -> Json:
    """Return the values of a configuration; none where it is no JSON object. Raises OSError, ValueError."""
    config = cast(JsonValue, json.loads((folder / name).read_text("utf-8")))
    return config if isinstance(config, dict) else {}


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


async def read_tokenizer(model: str, *, local: bool, revision: str | None = None) -> bytes:
    """Read the file from the model's folder or from the engine's hub cache. Raises NotFound."""
    cached = None if local else try_to_load_from_cache(model, _TOKENIZER, revision=revision)
    path = Path(model) / _TOKENIZER if local else Path(cached) if isinstance(cached, str) else None
    if path is None or not path.is_file():
        raise NotFound(f"{model} has no {_TOKENIZER} on this machine")
    return await asyncio.to_thread(path.read_bytes)
