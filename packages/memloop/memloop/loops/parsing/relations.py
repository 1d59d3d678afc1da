"""The reply of a relate prompt: one line for each new memory, ``1: updates 2`` or ``1: new``; or JSON.

The JSON is ``{"relations": [{"memory": 1, "relation": "updates", "stored": 2}]}``, or the list alone.
"""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from memloop.loops.parsing.json_values import json_values
from memloop.loops.parsing.spoken import listen
from memloop.ports import Completion

Verb: TypeAlias = Literal["same", "updates", "contradicts", "new"]

_LINE = re.compile(
    r"^[ \t>*-]{0,8}(\d{1,4})[ \t]{0,4}[:.)][ \t*\"]{0,4}(?:(same|updates|contradicts)[ \t*\"#]{1,6}(\d{1,4})|(new))\b",
    re.MULTILINE | re.IGNORECASE,
)
_MOST_LINES = 1_000


@dataclass(frozen=True, slots=True)
class Relation:
    """How a new memory relates to a stored one, both by their numbers in the prompt; ``new`` names no stored one."""

    memory: int
    verb: Verb
    stored: int | None = None


class _Entry(BaseModel):
    """One relation of the JSON form. Numbers may be text."""

    model_config = ConfigDict(extra="ignore")
    memory: int
    relation: Verb
    stored: int = 0


def parse_relations(completion: Completion) -> tuple[Relation, ...]:
    """Return the first relation of each new memory, in the order of the reply. Other lines and entries are left out."""
    text = listen(completion).text
    found: dict[int, Relation] = {}
    for each in json_values(text):
        listed = each.value.get("relations") if isinstance(each.value, dict) else each.value
        for entry in islice(cast(list[object], listed), _MOST_LINES) if isinstance(listed, list) else ():
            try:
                given = _Entry.model_validate(entry)
            except ValidationError:
                continue
            stored = None if given.relation == "new" else given.stored
            found.setdefault(given.memory, Relation(given.memory, given.relation, stored))
        if found:
            return tuple(found.values())
    for line in islice(_LINE.finditer(text), _MOST_LINES):
        number, verb, stored, _ = line.groups()
        relation = Relation(int(number), cast(Verb, (verb or "new").lower()), int(stored) if stored else None)
        found.setdefault(relation.memory, relation)
    return tuple(found.values())
