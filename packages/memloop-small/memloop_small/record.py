"""The record of what is shipped, and the folder of a user's cache where the model is made of it. Light to import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

LEARNED: Final = Path(__file__).with_name("adapter")
"""The folder of the adapter, its record and its curves."""
RECORD: Final = "adapter.json"


class Shipped(BaseModel):
    """``adapter.json``: the run that made the adapter, and three SHA-256."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    run: str
    adapter_sha256: str
    base_sha256: str
    merged_sha256: str

    @classmethod
    def read(cls, learned: Path = LEARNED) -> Shipped:
        """Read the record of the folder. Raises OSError."""
        return cls.model_validate_json((learned / RECORD).read_bytes())


def cache_folder() -> Path:
    """Return where this version of the model is made for its user. Other weights have another folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "memloop" / f"memloop-small-{Shipped.read().merged_sha256[:12]}"
