"""Recognises the events of a chat's stream that add nothing but text, for those who translate the stream."""

from typing import Final

import orjson

from memloop_service.http import object_in, parsed_object

_LINE: Final = b"data: "
_LINES: Final = 2
_WITH_TEXT: Final = frozenset({"content", "role"})
_ESCAPE: Final = b"\\"
_QUOTE: Final = b'"'
_NAME: Final = b'"content"'
_VALUES: Final = (_NAME + b":", _NAME + b": ")
_MOST_LESSONS: Final = 8
"""An engine whose events differ in more than their text is not worth learning."""


class TextEvents:
    """Reads the events of one stream, whose events differ in their text alone: what is around the text is learned.

    An event that has the same around a text in which JSON escapes nothing is not parsed.
    """

    def __init__(self) -> None:
        self._before = self._after = b""
        self._lessons = 0

    def text_of(self, event: bytes) -> str | None:
        """Return the event's text; None for an event that adds anything else."""
        text = self._known(event)
        if text is None and (text := only_text(event)) and self._lessons < _MOST_LESSONS:
            self._learn(event, text)
        return text

    def _known(self, event: bytes) -> str | None:
        before, after = self._before, self._after
        if not before or not event.startswith(before) or not event.endswith(after):
            return None
        raw = event[len(before) : len(event) - len(after)]
        return None if _QUOTE in raw or _ESCAPE in raw else _printable(raw)

    def _learn(self, event: bytes, text: str) -> None:
        """Take what is around the text, if that can be the one value of the one field ``content``."""
        self._lessons += 1
        before, found, after = event.partition(orjson.dumps(text))
        sure = found and before.endswith(_VALUES) and event.count(_NAME) == 1
        if sure and _ESCAPE not in before and _ESCAPE not in after:
            self._before, self._after = before + _QUOTE, _QUOTE + after


def _printable(raw: bytes) -> str | None:
    """Return the text; None for an empty one and for one that has to be looked at as JSON."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text and text.isprintable() else None


def only_text(event: bytes) -> str | None:
    """Return the text of an event that adds nothing but text: nearly every event is one, so it takes a short way."""
    if not event.startswith(_LINE) or event.count(b"\n") != _LINES:
        return None
    chunk = parsed_object(event[len(_LINE) :])
    choices = chunk.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or any(chunk.get(name) for name in ("usage", "error")):
        return None
    choice = object_in(choices[0])
    delta = object_in(choice.get("delta"))
    text = delta.get("content")
    if choice.get("index", 0) != 0 or choice.get("finish_reason") is not None or not isinstance(text, str):
        return None
    return text if not any(value for name, value in delta.items() if name not in _WITH_TEXT) else None
