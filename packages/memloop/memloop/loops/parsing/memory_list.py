"""The reply of a passive memory writer: one JSON object, ``{"memory list": [...], "summary": "..."}``.

Source: the extraction format of MemReader-0.6B and MemOS, whose list is named with a blank. Other models write the list
under another name, or the list alone.
"""

from dataclasses import dataclass
from typing import cast

from memloop.loops.parsing.json_values import ParsePath, json_values
from memloop.loops.parsing.spoken import listen
from memloop.ports import Completion

_NAMES = ("memory list", "memory_list", "memories", "memoryList", "facts")
_TEXTS = ("value", "memory", "fact", "content", "text")


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
    """Return the reply's first object with a memory list, without the prose, thinking and fences around it.

    A list of entries in the place of the object, or one entry alone, counts where no object holds a list. A call of a
    tool that was not offered counts only with a list that is not empty.
    """
    called = "\n".join(call.function.arguments for call in completion.tool_calls)
    spoken = listen(completion).text
    text = spoken or called
    listed: FoundList | None = None
    for found in json_values(text):
        if isinstance(found.value, dict):
            entries = next((found.value[name] for name in _NAMES if name in found.value), None)
            summary = found.value.get("summary")
            said = summary if isinstance(summary, str) else ""
            if isinstance(entries, list) and (entries or spoken):
                return FoundList(cast(list[object], entries), said, found.path)
            if isinstance(entries, dict):
                return FoundList([entries], said, "repaired")
            if listed is None and spoken and any(isinstance(found.value.get(name), str) for name in _TEXTS):
                listed = FoundList([found.value], said, "repaired")
        elif listed is None and spoken and found.value and all(isinstance(entry, dict | str) for entry in found.value):
            listed = FoundList(found.value, "", "repaired")
    return listed or NoList(_problem(text, completion.finish_reason))


def _problem(text: str, finish_reason: str) -> str:
    if not text:
        return "the reply was empty"
    if finish_reason == "length":
        return "the reply was cut off before its JSON ended"
    return 'the reply held no JSON object with a "memory list"'
