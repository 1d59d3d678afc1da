"""The reply of a relate prompt: one line for each new memory, ``1: updates 2`` or ``1: new``."""

import re
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeAlias, cast

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


def parse_relations(completion: Completion) -> tuple[Relation, ...]:
    """Return the first line of each new memory, in the order of the reply. Lines of another form are passed over."""
    found: dict[int, Relation] = {}
    for line in islice(_LINE.finditer(listen(completion).text), _MOST_LINES):
        number, verb, stored, _ = line.groups()
        relation = Relation(int(number), cast(Verb, (verb or "new").lower()), int(stored) if stored else None)
        found.setdefault(relation.memory, relation)
    return tuple(found.values())
