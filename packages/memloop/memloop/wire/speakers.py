"""The name of the person who said a message: one clean line, put before the text once.

A memory of a named message reads ``Caroline: I adopted a dog.``, and so does the memory writer's prompt. A message
without a name is its text.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field

MAX_NAME_CHARS: Final = 64
"""OpenAI's limit of ``messages[].name``."""
_NOT_SHOWN: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
"""Space, control characters, marks that turn the direction of writing, and lone surrogates."""


def clean_name(name: str | None) -> str | None:
    """Return the name as one line of at most 64 characters; None when it has no characters to show."""
    return _NOT_SHOWN.sub(" ", name or "").strip()[:MAX_NAME_CHARS].rstrip() or None


Speaker: TypeAlias = Annotated[Annotated[str, Field(max_length=MAX_NAME_CHARS)] | None, AfterValidator(clean_name)]


def said(name: str | None, text: str) -> str:
    """Return the text behind the name of its speaker, unless it begins with it or has no words."""
    before = _before(name)
    return f"{before}{text}" if before and text.strip() and not text.startswith(before) else text


def pieces(text: str, *, name: str | None, most_chars: int) -> Iterator[str]:
    """Cut the text so that each piece has at most so many characters with the name before it."""
    size = most_chars - len(_before(name))
    return (text[start : start + size] for start in range(0, len(text), size))


def _before(name: str | None) -> str:
    return f"{name}: " if name else ""
