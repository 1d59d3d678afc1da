"""Finds the served model's ``tokenizer.json`` for the launcher's clients."""

import asyncio
from pathlib import Path

from huggingface_hub import try_to_load_from_cache

from memloop.wire.errors import NotFound

_FILE = "tokenizer.json"


async def read_tokenizer(model: str, *, local: bool, revision: str | None = None) -> bytes:
    """Read the file from the model's folder or from the engine's hub cache. Raises NotFound."""
    cached = None if local else try_to_load_from_cache(model, _FILE, revision=revision)
    path = Path(model) / _FILE if local else Path(cached) if isinstance(cached, str) else None
    if path is None or not path.is_file():
        raise NotFound(f"{model} has no {_FILE} on this machine")
    return await asyncio.to_thread(path.read_bytes)
