"""The reply of a small memory writer: a line ``topic: fact`` for each memory, ``none`` or ``wait``."""

import re
from itertools import islice
from typing import Final

from memloop.loops.parsing.memory_list import FoundList, NoList
from memloop.loops.parsing.spoken import listen
from memloop.ports import Completion
from memloop.wire.chat import Json

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
    entries: list[object] = [_entry(*line.groups()) for line in islice(_LINE.finditer(whole), _MOST_LINES)]
    if entries:
        return FoundList(entries, "", "repaired" if cut else "native")
    if not text:
        return NoList("the reply was empty")
    return NoList('the reply held no line "topic: fact", and was neither "none" nor "wait"')


def _entry(topic: str, fact: str) -> Json:
    kind = "UserMemory" if _OF_USER.search(fact) else "LongTermMemory"
    return {"key": topic.strip(), "memory_type": kind, "value": fact.strip(), "tags": []}
