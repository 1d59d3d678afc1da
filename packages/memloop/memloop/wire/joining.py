"""Joins names that a client chooses to one text, from which ids and keys are derived."""

from typing import Final

_SEPARATOR: Final = "\x1f"
_ESCAPE: Final = "\x00"


def joined(*parts: str | None) -> str:
    """Join the parts with U+001F; different parts give different texts.

    U+0000 and U+001F inside a part are escaped, each by U+0000 and a digit. A part that is None is U+0000 alone.
    """
    return _SEPARATOR.join(
        _ESCAPE if part is None else part.replace(_ESCAPE, f"{_ESCAPE}0").replace(_SEPARATOR, f"{_ESCAPE}1")
        for part in parts
    )
