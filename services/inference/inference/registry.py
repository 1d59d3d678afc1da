"""Reads ``models.toml``, the named models; each row is a :class:`ModelCard`."""

import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from inference.profile_import.imported import Kind

_PACKAGE = Path(__file__).parent
MODELS_FILE = _PACKAGE / "models.toml"


class RegistryError(ValueError):
    """``models.toml`` is invalid; the message names the place and the reason."""


class ModelShape(BaseModel):
    """Sizes for the memory estimate of a model that is not on disk. Source: the checkpoint's ``config.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    parameters: int = Field(gt=0)
    layers: int = Field(gt=0)
    heads: int | None = Field(default=None, gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)


class ModelCard(BaseModel):
    """Serving settings of one model. ``source`` is a hub id or, after loading, an absolute folder.

    ``prompts`` names a published model's own prompts, which come from the user's copy and replace ``profile``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    source: str | None = None
    profile: str = "default"
    prompts: Kind | None = None
    max_model_len: int | None = Field(default=None, gt=0)
    max_num_seqs: int | None = Field(default=None, gt=0)
    dtype: str = "auto"
    kv_cache_memory_bytes: int | None = Field(default=None, gt=0)
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    strict_tools: bool = False
    speculation: Literal["ngram"] | None = None
    shape: ModelShape | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    models: dict[str, ModelCard]


def read_registry(path: Path = MODELS_FILE) -> dict[str, ModelCard]:
    """Load all rows by name, with absolute folders. Raises RegistryError."""
    try:
        rows = _File.model_validate(tomllib.loads(path.read_text("utf-8"))).models
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise RegistryError(f"{path}: {error}") from error
    for name, card in rows.items():
        if card.source is not None and card.source.startswith(("./", "../")):
            rows[name] = card.model_copy(update={"source": str((path.parent / card.source).resolve())})
    return rows
