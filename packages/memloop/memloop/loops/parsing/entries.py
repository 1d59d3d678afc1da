"""A model's memories in an object: the list under any of its names, and the text of one entry in any of its forms.

Small models write names in another case or notation, a list as a JSON text, one memory in place of the list, names of
their own for what they remember (``{"locker_code": 482}``), and numbers or lists as the text.
"""

import re
from collections.abc import Mapping
from typing import Final, cast

from memloop.loops.parsing.json_values import json_values

_LISTS: Final = ("memory_list", "memories", "memory_lists", "facts")
_TEXTS: Final = ("value", "memory", "fact", "content", "text")
_KEY: Final = "key"
_ABOUT: Final = frozenset({_KEY, "memory_type", "type", "tags", "summary", "reason", "id", "confidence", "importance"})
_MOST_DEEP: Final = 4


def entries_in(fields: Mapping[str, object]) -> list[object] | None:
    """Return the unchecked entries that an object lists; None where it lists none.

    An object in the place of the list is one entry, or has a fact under each of its names.
    """
    found = _first(_named(fields), _LISTS)
    if isinstance(found, str):
        found = next((each.value for each in json_values(found)), None)
    if isinstance(found, list):
        return cast(list[object], found)
    if not isinstance(found, dict) or not found:
        return None
    inside = cast(dict[str, object], found)
    return [inside] if is_entry(inside) or _KEY in _named(inside) else [{name: value} for name, value in inside.items()]


def is_entry(fields: Mapping[str, object]) -> bool:
    """Return whether an object holds a memory's text under one of its names."""
    return any(_words(value) for name, value in _named(fields).items() if name in _TEXTS)


def entry_of(entry: object) -> dict[str, object]:
    """Return an entry with its fields under their names: ``value`` is its text, None without one.

    A text that is no text (a number, a list) gets the entry's key in front. Fields of unknown names are the text where
    there is no other.
    """
    given = cast(dict[str, object], entry) if isinstance(entry, dict) else {}
    fields = _named(given)
    if isinstance(entry, str | list):
        fields = {"value": cast(object, entry)}
    key = fields.get(_KEY)
    title = key.strip() if isinstance(key, str) else ""
    said = next((value for name in _TEXTS if _words(value := fields.get(name))), None)
    text = _words(said)
    if text and not isinstance(said, str) and title:
        text = f"{title}: {text}"
    if not text:
        facts = (
            f"{name}: {words}"
            for name, value in given.items()
            if _snake(name) not in _ABOUT and (words := _words(value))
        )
        text = "; ".join(facts)
        text = f"{title}: {text}" if text and title else text
    return {**fields, "value": text or None}


def _named(fields: Mapping[str, object]) -> dict[str, object]:
    return {_snake(name): value for name, value in fields.items()}


def _snake(name: str) -> str:
    """``memoryList``, ``Memory List`` and ``MEMORY-LIST`` are ``memory_list``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", name.strip()[:64]).lower()


def _first(fields: Mapping[str, object], names: tuple[str, ...]) -> object:
    return next((fields[name] for name in names if name in fields), None)


def _words(value: object, deep: int = 0) -> str:
    """Return a value as a text; empty for what says nothing."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if deep == _MOST_DEEP or not isinstance(value, dict | list):
        return ""
    if isinstance(value, list):
        parts = [_words(each, deep + 1) for each in cast(list[object], value)]
    else:
        named = ((name, _words(each, deep + 1)) for name, each in cast(dict[str, object], value).items())
        parts = [f"{name}: {words}" for name, words in named if words]
    return ", ".join(part for part in parts if part)
