"""The reply of a passive memory writer: one JSON object, ``{"memory list": [...], "summary": "..."}``.

Source: the extraction format of MemReader-0.6B and MemOS, whose list is named with a blank. Other models write the list
under another name, the list alone, or an object for each memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from memloop.loops.parsing.entries import entries_in, is_entry
from memloop.loops.parsing.json_values import ParsePath, read_json
from memloop.loops.parsing.spoken import listen
from memloop.ports import Completion


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
        summary = cast(dict[str, object], value).get("summary")
        return FoundList(entries, summary if isinstance(summary, str) else "", "native")

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
    return NoList(_problem(text, completion.finish_reason))


def _once(entries: Iterable[object]) -> list[object]:
    """Return the entries without those that a model wrote twice."""
    return list({repr(entry): entry for entry in entries}.values())


def _problem(text: str, finish_reason: str) -> str:
    if not text:
        return "the reply was empty"
    if finish_reason == "length":
        return "the reply was cut off before its JSON ended"
    return 'the reply held no JSON object with a "memory list"'
