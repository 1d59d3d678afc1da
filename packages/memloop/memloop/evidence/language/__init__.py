"""The words of the languages, in TOML files of this folder, each with the model that reads it beside its use."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict

_NAME: Final = re.compile(r"\{([a-z_]+)\}")


def _parted(text: str) -> list[str]:
    return [word.replace("_", " ") for word in text.split()]


Words: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_parted)]
"""Words in their order; in the file one text, with blanks between them and low lines for blanks inside."""
WordSet: TypeAlias = Annotated[frozenset[str], BeforeValidator(_parted)]
Pattern: TypeAlias = Annotated[re.Pattern[str], BeforeValidator(lambda text: text.replace("\n", ""))]
"""A regular expression; a line break in the file means nothing."""


class Tables(BaseModel):
    """The tables of one file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def read(cls, name: str) -> Self:
        """Read ``name.toml``. Raises ValidationError for a table that is missing or unknown."""
        return cls.model_validate(tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8")))


def filled(pattern: str, pieces: Mapping[str, str]) -> str:
    """Return a pattern with the piece in the place of each ``{name}``; a line break in the file means nothing."""
    return _NAME.sub(lambda found: filled(pieces[found[1]], pieces), pattern).replace("\n", "")
