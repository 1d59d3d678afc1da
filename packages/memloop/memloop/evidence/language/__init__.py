"""The words of the languages, in TOML files of this folder, each with the model that reads it beside its use."""

import tomllib
from pathlib import Path
from typing import Annotated, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict

Words: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(str.split)]
"""Words in their order; in the file one text, with blanks between them."""
WordSet: TypeAlias = Annotated[frozenset[str], BeforeValidator(str.split)]


class Tables(BaseModel):
    """The tables of one file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def read(cls, name: str) -> Self:
        """Read ``name.toml``. Raises ValidationError for a table that is missing or unknown."""
        return cls.model_validate(tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8")))
