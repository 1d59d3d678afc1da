"""The reply of a gate prompt: a memory, or word that nothing changes; and whether the memory suffices."""

import re
from dataclasses import dataclass

from memloop.loops.parsing.memory import parse_memory
from memloop.ports import Completion

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
