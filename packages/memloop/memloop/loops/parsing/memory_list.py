"""The reply of a passive memory writer: ``{"memory list": [...], "summary": "..."}``, or a line for each memory.

Our own prompts ask first for what ``the user`` does and whether it ``tells of their life``: a weak model names small
talk as such, and lists it all the same.

Source: the extraction format of MemReader-0.6B and MemOS, whose list is named with a blank. Other models write the list
under another name, the list alone, or an object for each memory.

A small memory writer replies a line ``topic: fact`` for each memory, ``none`` or ``wait``.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final, cast

from memloop.loops.parsing.json_values import ParsePath, entries_in, is_entry, read_json
from memloop.loops.rendering import listen
from memloop.ports import Completion

_TURN: Final = "the user"
_LIFE: Final = "tells of their life"
_TELLS_NOTHING: Final = frozenset({"makes small talk", "asks something", "wants something done"})


@dataclass(frozen=True, slots=True)
class FoundList:
    """The decoded object with unchecked entries. ``path``: how it was found (:class:`FoundJson`)."""

    entries: list[object]
    summary: str
    path: ParsePath


@dataclass(frozen=True, slots=True)
class NoList:
    """The reply holds no readable object; ``problem`` is the reason, for the model and the record."""

    problem: str


def find_memory_list(completion: Completion) -> FoundList | NoList:
    """Return the memory lists of the reply's objects as one, without the prose, thinking and fences around them.

    Lists of entries in the place of an object, or entries alone, count where no object holds a list. A call of a tool
    that was not offered counts only with a list that is not empty.
    """
    called = "\n".join(call.function.arguments for call in completion.tool_calls)
    spoken = listen(completion).text
    text = spoken or called

    def listed(value: dict[str, object] | list[object]) -> FoundList | None:
        entries = entries_in(value) if isinstance(value, dict) else None
        if entries is None or not (entries or spoken):
            return None
        fields = cast(dict[str, object], value)
        summary = fields.get("summary")
        kept = [] if fields.get(_TURN) in _TELLS_NOTHING and fields.get(_LIFE) != "yes" else entries
        return FoundList(kept, summary if isinstance(summary, str) else "", "native")

    def objects(value: dict[str, object] | list[object]) -> list[object] | None:
        if isinstance(value, dict):
            return [value] if is_entry(value) else None
        holds_one = any(isinstance(entry, dict) for entry in value)
        return value if holds_one and all(isinstance(entry, dict | str) for entry in value) else None

    def texts(value: dict[str, object] | list[object]) -> list[object] | None:
        return value if isinstance(value, list) and value and all(isinstance(entry, str) for entry in value) else None

    lists, path = read_json(text, listed)
    if lists:
        entries = lists[0].entries if len(lists) == 1 else _once(entry for each in lists for entry in each.entries)
        return FoundList(entries, next((each.summary for each in lists if each.summary), ""), path)
    bare = (read_json(text, objects)[0] or read_json(text, texts)[0]) if spoken else []
    if bare:
        return FoundList(_once(entry for each in bare for entry in each), "", "repaired")
    if not text:
        return NoList("the reply was empty")
    if completion.finish_reason == "length":
        return NoList("the reply was cut off before its JSON ended")
    return NoList('the reply held no JSON object with a "memory list"')


def _once(entries: Iterable[object]) -> list[object]:
    """Return the entries without those that a model wrote twice."""
    return list({repr(entry): entry for entry in entries}.values())


WAIT: Final = "wait"
"""The reply to a fact that the next turns may finish."""
NOTHING: Final = "none"
"""The reply to turns with nothing worth keeping."""
_LINE: Final = re.compile(r"^[ \t*-]{0,4}([^\s:][^:\n]{0,119}):[ \t]+(\S.*)$", re.MULTILINE)
_OF_USER: Final = re.compile(r"\b(?:the )?user\b", re.IGNORECASE)
_MOST_LINES: Final = 200


def find_memory_lines(completion: Completion) -> FoundList | NoList | None:
    """Return the reply's memories as unchecked entries; None to wait for more turns.

    A memory that speaks of the user is a ``UserMemory``, another one a ``LongTermMemory``.
    """
    text = listen(completion).text
    word = text.strip().rstrip(".").lower()
    if word == WAIT:
        return None
    if word == NOTHING:
        return FoundList([], "", "native")
    cut = completion.finish_reason == "length"
    whole = text.rpartition("\n")[0] if cut else text  # half a fact is worse than none
    entries: list[object] = []
    for line in islice(_LINE.finditer(whole), _MOST_LINES):
        topic, fact = line.groups()
        kind = "UserMemory" if _OF_USER.search(fact) else "LongTermMemory"
        entries.append({"key": topic.strip(), "memory_type": kind, "value": fact.strip(), "tags": []})
    if entries:
        return FoundList(entries, "", "repaired" if cut else "native")
    if not text:
        return NoList("the reply was empty")
    return NoList('the reply held no line "topic: fact", and was neither "none" nor "wait"')
