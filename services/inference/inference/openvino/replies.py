"""A reply's tokens as text, piece by piece: whole characters alone, and nothing from a stop string on."""

from collections.abc import Callable, Sequence
from typing import Final

_HALF: Final = "\N{REPLACEMENT CHARACTER}"
"""How the end of an unfinished character is decoded."""


class ReplyText:
    """Turns tokens into text. What may begin a stop string is held back until it is known."""

    def __init__(self, decode: Callable[[Sequence[int]], str], stops: Sequence[str] = ()) -> None:
        self._decode, self._stops = decode, stops
        self._ids: list[int] = []
        self._held = ""
        self.tokens = 0
        self.stopped = False

    def add(self, ids: Sequence[int]) -> str:
        """Return the text that these tokens complete."""
        self.tokens += len(ids)
        self._ids += ids
        text = self._decode(self._ids)
        if text.endswith(_HALF):
            return ""
        self._ids = []
        return self._before_stop(self._held + text)

    def end(self) -> str:
        """Return what was held back: no more tokens come."""
        rest, self._held = self._held + (self._decode(self._ids) if self._ids else ""), ""
        return rest

    def _before_stop(self, text: str) -> str:
        found = min((place for stop in self._stops if (place := text.find(stop)) >= 0), default=-1)
        if found >= 0:
            self.stopped, self._held = True, ""
            return text[:found]
        begun = (size for stop in self._stops for size in range(1, len(stop)) if text.endswith(stop[:size]))
        held = max(begun, default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]
