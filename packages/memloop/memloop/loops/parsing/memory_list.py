"""The reply of a passive memory writer: one JSON object, ``{"memory list": [...], "summary": "..."}``.

Source: the extraction format of MemReader-0.6B and MemOS, whose list is named with a blank.
"""

import json
import re
from dataclasses import dataclass
from itertools import islice
from typing import Literal, cast

from memloop.loops.parsing.spoken import listen
from memloop.ports import Completion
from memloop.wire.chat import Json

_NAMES = ("memory list", "memory_list")
_OBJECT = re.compile(r"\{")
_MOST_TRIES = 64
"""Objects that are tried: a reply of braces alone must not keep the process busy."""


@dataclass(frozen=True, slots=True)
class FoundList:
    """The decoded object with unchecked entries. ``native``: the reply was that object alone."""

    entries: list[object]
    summary: str
    path: Literal["native", "fallback"]


@dataclass(frozen=True, slots=True)
class NoList:
    """The reply holds no readable object; ``problem`` is the reason, for the model and the record."""

    problem: str


def find_memory_list(completion: Completion) -> FoundList | NoList:
    """Return the reply's first object with a memory list, without the prose, thinking and fences around it."""
    text = listen(completion).text
    whole = _decoded(text, 0)
    if whole is not None and _entries(whole) is not None:
        return _found(whole, "native" if text.startswith("{") and text.endswith("}") else "fallback")
    for brace in islice(_OBJECT.finditer(text), _MOST_TRIES):
        value = _decoded(text, brace.start())
        if value is not None and _entries(value) is not None:
            return _found(value, "fallback")
    return NoList(_problem(text, completion.finish_reason))


def _problem(text: str, finish_reason: str) -> str:
    if not text:
        return "the reply was empty"
    if finish_reason == "length":
        return "the reply was cut off before its JSON ended"
    return 'the reply held no JSON object with a "memory list"'


def _decoded(text: str, start: int) -> Json | None:
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return cast(Json, value) if isinstance(value, dict) else None


def _entries(value: Json) -> list[object] | None:
    listed = next((value[name] for name in _NAMES if name in value), None)
    return cast(list[object], listed) if isinstance(listed, list) else None


def _found(value: Json, path: Literal["native", "fallback"]) -> FoundList:
    summary = value.get("summary")
    return FoundList(_entries(value) or [], summary if isinstance(summary, str) else "", path)
