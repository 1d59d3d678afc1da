"""A piece of a text."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextSpan:
    """``text`` stands at ``start`` to ``end``, in characters. ``chunk`` is where it begins, in a document of chunks."""

    start: int
    end: int
    text: str
    chunk: int = 0
