"""The files of a published checkpoint, in ``files.json`` beside them in object storage.

The trainer writes it last, so a checkpoint without it is an unfinished upload.
"""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from memloop.wire.base import Wire

FILES: Final = "files.json"
_SAFE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


def _safe(name: str) -> str:
    """Return the name. Raises ValueError for anything but a plain name: no folder, nothing hidden."""
    if not _SAFE.fullmatch(name) or name == FILES:
        raise ValueError("is not the plain name of a file")
    return name


class PublishedFile(Wire):
    """A file's size in bytes, and the SHA-256 of its content in hex."""

    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class PublishedFiles(Wire):
    """All files of a checkpoint by name; they lie in one folder."""

    files: dict[Annotated[str, AfterValidator(_safe)], PublishedFile] = Field(min_length=1, max_length=2000)
