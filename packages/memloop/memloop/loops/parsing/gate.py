"""The reply of a gate prompt: a memory, or word that nothing changes; and whether the memory suffices.

The reply of a read or an integrate prompt is the new memory, as it is.
"""

import re
from dataclasses import dataclass

from memloop.loops.parsing.spoken import as_written, listen
from memloop.ports import Completion

_END = re.compile(r"""[.!?](?:["')\]]|</\w+>)*(?=\s|$)|[。！？]|\n""")


def parse_memory(completion: Completion, *, whole: bool = False) -> str:
    """Return the new memory; empty for an empty reply, or when a filter removed part of it.

    A reply that hit its token limit is cut back to its last complete line or sentence, if it has one: half a fact is
    worse than none. ``whole`` takes it verbatim, white space included, as published.
    """
    if completion.finish_reason == "content_filter":
        return ""
    text = listen(completion).text
    if whole and text:
        return as_written(completion)
    return _complete_part(text) if completion.finish_reason == "length" else text


def _complete_part(text: str) -> str:
    ends = [end.end() for end in _END.finditer(text)]
    return text[: ends[-1]].strip() if ends else text


_KEEP = re.compile(r"<keep\s*/?>", re.IGNORECASE)
_ENOUGH = re.compile(r"<enough\s*/?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Gate:
    """``memory`` is the new memory, empty when the old one stays; ``keep`` says that the model wanted it to stay."""

    memory: str
    keep: bool
    enough: bool


def parse_gate(completion: Completion) -> Gate:
    """Parse a gated reply. Text beside its marks is always a new memory, so that no mark loses a fact.

    ``<enough/>`` alone keeps the memory too. A reply that was cut gives no verdict on sufficiency.
    """
    text = parse_memory(completion)
    enough = completion.finish_reason != "length" and bool(_ENOUGH.search(text))
    memory = _KEEP.sub("", _ENOUGH.sub("", text)).strip()
    return Gate(memory, keep=not memory and bool(text), enough=enough)
