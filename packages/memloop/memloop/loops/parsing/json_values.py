"""The JSON in a model's reply, as it stands, behind prose and fences, or repaired; and the memories in it.

Small models write JSON that almost is: single or smart quotes, trailing commas, comments, closing brackets that are
missing. The library ``json-repair`` mends these. An object that is cut in its middle is left out. Repair is tried last
and on the first 6,000 characters alone, because its time grows with the square of a hostile text.

Small models also write names in another case or notation, a list as a JSON text, one memory in place of the list, names
of their own for what they remember (``{"locker_code": 482}``), and numbers or lists as the text.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, TypeAlias, TypeVar, cast

import json_repair

_Value: TypeAlias = dict[str, object] | list[object]
_Read = TypeVar("_Read")
ParsePath: TypeAlias = Literal["native", "fallback", "repaired"]
_OPENS: Final = re.compile(r"[{\[]")
_OPENS_WITH_A_NAME: Final = re.compile(r"""\{\s*["'“”‘’`]|\[\s*\{\s*["'“”‘’`]""")
_SMART_QUOTES: Final = dict.fromkeys(map(ord, "“”„‟"), '"')
_MOST_TRIES: Final = 64
"""Objects that are tried: a reply of braces alone must not keep the process busy."""
_MOST_REPAIRS: Final = 2
_REPAIRED_CHARS: Final = 6_000


@dataclass(frozen=True, slots=True)
class FoundJson:
    """An object or a list, unchecked. ``native``: the text was that value alone; ``repaired``: it was not JSON."""

    value: _Value
    path: ParsePath


def json_values(text: str) -> Iterator[FoundJson]:
    """Yield the objects and lists in the text, what is JSON before what must be repaired, outer before inner ones."""
    for start in islice(_OPENS.finditer(text), _MOST_TRIES):
        try:
            value, end = json.JSONDecoder().raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        alone = start.start() == 0 and end == len(text)
        yield FoundJson(cast(_Value, value), "native" if alone else "fallback")
    for values in _repaired(text):
        for value in values:
            yield FoundJson(value, "repaired")


def read_json(text: str, read: Callable[[_Value], _Read | None]) -> tuple[list[_Read], ParsePath]:
    """Return what ``read`` makes of the objects and lists in the text, one beside the other, and how they were found.

    ``read`` returns None for a value of another kind: then it gets those inside that value. What must be repaired is
    read only where nothing else was.
    """
    taken: list[_Read] = []
    path: ParsePath = "fallback"
    at = unread = 0
    while unread < _MOST_TRIES and (start := _OPENS.search(text, at)):
        try:
            value, end = json.JSONDecoder().raw_decode(text, start.start())
            found = read(cast(_Value, value))
        except (ValueError, RecursionError):
            found, end = None, 0
        if found is None:
            at, unread = start.end(), unread + 1
            continue
        path = "native" if start.start() == 0 and end == len(text) else "fallback"
        taken.append(found)
        at = end
    for values in _repaired(text) if not taken else ():
        taken = [found for value in values if (found := read(value)) is not None]
        if taken:
            return taken, "repaired"
    return taken, path


def _repaired(text: str) -> Iterator[list[_Value]]:
    for start in islice(_OPENS_WITH_A_NAME.finditer(text[:_REPAIRED_CHARS]), _MOST_REPAIRS):
        yield _mended(text[start.start() : start.start() + _REPAIRED_CHARS])


def _mended(broken: str) -> list[_Value]:
    """Return the objects and lists of what is almost JSON, up to the last bracket that closes.

    What follows that bracket would say something else than the whole: half a sentence is another fact.
    """
    whole = broken[: max(broken.rfind("}"), broken.rfind("]")) + 1]
    if '"' not in whole:
        whole = whole.translate(_SMART_QUOTES)
    try:
        value: object = json_repair.repair_json(whole, return_objects=True, skip_json_loads=True)
    except (ValueError, RecursionError):
        return []
    several = isinstance(value, list) and broken.startswith("{")
    values = cast(list[object], value) if several else [value]
    return [cast(_Value, each) for each in values if isinstance(each, dict | list)]


_LISTS: Final = ("memory_list", "memories", "memory_lists", "facts")
_TEXTS: Final = ("value", "memory", "fact", "content", "text")
_KEY: Final = "key"
_ABOUT: Final = frozenset({_KEY, "memory_type", "type", "tags", "summary", "reason", "id", "confidence", "importance"})
_MOST_DEEP: Final = 4


def entries_in(fields: Mapping[str, object]) -> list[object] | None:
    """Return the unchecked entries that an object lists; None where it lists none.

    An object in the place of the list is one entry, or has a fact under each of its names.
    """
    named = _named(fields)
    found = next((named[name] for name in _LISTS if name in named), None)
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
