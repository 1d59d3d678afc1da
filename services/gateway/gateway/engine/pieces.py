"""Recognises the events of a chat's stream that add nothing but text, for those who translate the stream."""

from typing import Final

from memloop_service.http import object_in, parsed_object

_LINE: Final = b"data: "
_LINES: Final = 2
_WITH_TEXT: Final = frozenset({"content", "role"})


def only_text(event: bytes) -> str | None:
    """Return the text of an event that adds nothing but text; None for any other event."""
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
