"""Relates new memories to stored ones under other keys, so that a changed fact replaces its old state.

The store replaces a memory when a new one has the same key and type. The memory writer does not see the stored keys and
invents one each time. So this loop shows the model each new memory again, with the live memories nearest to it, and the
model relates them: ``same``, ``updates``, ``contradicts`` or ``new`` (after mem0's update step, arXiv 2504.19413,
section 2.1). A related memory takes over the key and type of the stored one. The store's rules for memories of one key
then apply: the old state stays in the history.

A memory that the reply omits is stored unchanged. At worst both memories stay live.

The reply has one line for each new memory, ``1: updates 2`` or ``1: new``; or it is JSON:
``{"relations": [{"memory": 1, "relation": "updates", "stored": 2}]}``, or the list alone.

A profile with ``relating = "pairs"`` is asked about one new and one stored memory at a time, the nearest first, until
one is related: a small model finds the right line of a list far less often than it compares two.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Final, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from memloop.loops.parsing.json_values import json_values
from memloop.loops.rendering import listen, one_line
from memloop.loops.results import AddMemories, DecisionResult
from memloop.ports import ChatModel, Completion
from memloop.profiles import Profile
from memloop.wire.memory import MemoryDraft, MemoryItem
from memloop.wire.memory_events import DecisionRecord

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


SHOWN_CHARS: Final = 400
"""The most characters of each text: enough to identify its statement."""
_CHARS_PER_TOKEN: Final = 2
"""Fewer than of any common tokenizer on prose, so that the list fits where a chunk does."""


async def relate(
    result: DecisionResult, near: Sequence[Sequence[MemoryItem]], *, model: ChatModel, profile: Profile
) -> DecisionResult:
    """Place new memories under the keys of the stored ones that they update, and record the relations.

    ``near`` are the live memories nearest to each new one, best first, without those of its own key and type. Costs one
    call if there is one, with ``pairs`` one for each that is asked about, else none. Without a ``relate`` prompt in the
    profile the decision is unchanged. Raises the errors of the model.
    """
    if "relate" not in profile.prompts or not isinstance(result.decision, AddMemories):
        return result
    listed = Listed.of(result.decision.drafts, near, most_chars=profile.budget.chunk_tokens * _CHARS_PER_TOKEN)
    if not listed.stored:
        return result
    if profile.relating == "pairs":
        found, completions = await _ask_pairs(listed, result.decision.drafts, model, profile)
    else:
        completions = [await model.complete(profile.prompt("relate", memories=listed.text))]
        found = parse_relations(completions[0])
    relations = listed.valid(found)
    record = DecisionRecord(
        action="relate",
        reason="; ".join(listed.words(relation) for relation in relations),
        reasoning="\n".join(filter(None, (listen(each).reasoning for each in completions))),
        parse_path="native" if relations else "failed",
    )
    return replace(
        result,
        decision=replace(result.decision, drafts=listed.related(result.decision.drafts, relations)),
        records=(*result.records, record),
        usage=sum((each.usage for each in completions), result.usage),
    )


def pair(draft: MemoryDraft, stored: MemoryItem) -> str:
    """Return the prompt's list of one new memory and one stored one."""
    return "\n".join(_lines(1, draft, {1: stored}))


async def _ask_pairs(
    listed: "Listed", drafts: Sequence[MemoryDraft], model: ChatModel, profile: Profile
) -> tuple[list[Relation], list[Completion]]:
    found: dict[int, Relation] = {}
    completions: list[Completion] = []
    for place, numbers in listed.below.items():
        for number in sorted(numbers):
            memories = pair(drafts[place - 1], listed.stored[number])
            completions.append(await model.complete(profile.prompt("relate", memories=memories)))
            for said in parse_relations(completions[-1])[:1]:
                found[place] = Relation(place, said.verb, None if said.verb == "new" else number)
            if place in found and found[place].verb != "new":
                break
    return list(found.values()), completions


@dataclass(frozen=True, slots=True)
class Listed:
    """The prompt's list: ``stored`` memories by number, and the numbers listed below each new memory."""

    text: str
    stored: dict[int, MemoryItem]
    below: dict[int, frozenset[int]]

    @classmethod
    def of(cls, drafts: Sequence[MemoryDraft], near: Sequence[Sequence[MemoryItem]], *, most_chars: int) -> "Listed":
        """List the drafts that have neighbours, as many as fit."""
        numbers, blocks = count(1), list[str]()
        stored, below = dict[int, MemoryItem](), dict[int, frozenset[int]]()
        for place, (draft, items) in enumerate(zip(drafts, near, strict=True), 1):
            numbered = {number: item for item, number in zip(items, numbers, strict=False)}
            block = "\n".join(_lines(place, draft, numbered))
            most_chars -= len(block) + 1
            if numbered and most_chars >= 0:
                blocks.append(block)
                stored |= numbered
                below[place] = frozenset(numbered)
        return cls("\n".join(blocks), stored, below)

    def valid(self, relations: Sequence[Relation]) -> list[Relation]:
        """Keep the relations that name a listed memory; of two that name one stored memory, the first."""
        taken: set[str] = set()
        kept: list[Relation] = []
        for relation in relations:
            listed = self.below.get(relation.memory, frozenset[int]())
            if relation.stored is None:
                kept += [relation] if listed else []
            elif relation.stored in listed and (item_id := self.stored[relation.stored].id) not in taken:
                kept.append(relation)
                taken.add(item_id)
        return kept

    def related(self, drafts: Sequence[MemoryDraft], relations: Sequence[Relation]) -> tuple[MemoryDraft, ...]:
        """Return the drafts, each related one under the key and type of its stored memory."""
        changed = {relation.memory: self._placed(drafts[relation.memory - 1], relation) for relation in relations}
        return tuple(changed.get(place, draft) for place, draft in enumerate(drafts, 1))

    def words(self, relation: Relation) -> str:
        """Format the relation for the record, with the stored memory's id."""
        stored = f" {self.stored[relation.stored].id}" if relation.stored is not None else ""
        return f"{relation.memory}: {relation.verb}{stored}"

    def _placed(self, draft: MemoryDraft, relation: Relation) -> MemoryDraft:
        if relation.stored is None:
            return draft
        item = self.stored[relation.stored]
        value = item.memory if relation.verb == "same" else draft.value
        return draft.model_copy(update={"key": item.key, "value": value, "memory_type": item.memory_type})


def _lines(place: int, draft: MemoryDraft, stored: dict[int, MemoryItem]) -> Iterator[str]:
    yield f"New memory {place}: {_shown(draft.key, draft.value)}"
    for number, item in stored.items():
        yield f"  stored memory {number} ({item.valid_from:%Y-%m-%d}): {_shown(item.key, item.memory)}"


def _shown(key: str, value: str) -> str:
    return one_line(f"{key}: {value}"[:SHOWN_CHARS])
