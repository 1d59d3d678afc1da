"""The JSON in a model's reply: as it stands, behind prose and fences, or repaired.

Small models write JSON that almost is: single or smart quotes, trailing commas, comments, closing brackets that are
missing. The library ``json-repair`` mends these. An object that is cut in its middle is left out. Repair is tried last
and on the first 6,000 characters alone, because its time grows with the square of a hostile text.
"""

import json
import re
from collections.abc import Callable, Iterator
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
