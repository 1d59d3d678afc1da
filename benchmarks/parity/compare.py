"""Compares the requests of two loops, and names what differs.

A named difference is one that we chose, or a fault of the published code; every other one is unnamed.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

import orjson

from benchmarks.parity.scripted_model import Request
from memloop.profiles import neutralise
from memloop.wire.chat import THINKING_SWITCH, Json

NAMES: Final = {
    "repeated": "Their client sends each call more than once; the last reply counts.",
    "hosted switch": 'They add "thinking": {"type": "disabled"}, which one hosted API takes.',
    "thinking off": "We switch thinking off in the chat template; they leave it to the template's default.",
    "tags": "A tag of the prompts inside a text of the document is made harmless (decision 2).",
    "edges": "They drop white space around question and document; with parity we read both as they are.",
    "composed": "Their tokenizer's texts have characters put together (NFC); our chunks are the document's own text.",
    "memory kept": "An empty reply, or a thought without an end, becomes their memory; ours stays (decision 22).",
}
_MEMORY: Final = re.compile(r"<memory>\n(.*?)\n?</memory>", re.DOTALL)
_EDGES: Final = re.compile(r"(<(problem|section)> ?\n)\s*(.*?)\s*(\n</\2>)", re.DOTALL)
"""The slots of question and document, each with the white space around its text."""
_HOSTED_SWITCH: Final = {"type": "disabled"}
_THINKING_OFF: Final = {"enable_thinking": False}


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs in one request (counted from 1). ``name`` is empty when nothing explains it."""

    request: int
    name: str
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One item's requests beside each other."""

    item: str
    theirs: int
    ours: int
    equal: int
    differences: tuple[Difference, ...]

    @property
    def names(self) -> list[str]:
        """The names of the differences, each once, in the order of ``NAMES``."""
        found = {difference.name for difference in self.differences}
        return [name for name in NAMES if name in found]

    @property
    def unnamed(self) -> list[Difference]:
        """The differences that nothing explains."""
        return [difference for difference in self.differences if not difference.name]


def compare(item: str, theirs: Sequence[Request], ours: Sequence[Request]) -> Comparison:
    """Compare two loops' requests one by one. ``equal`` counts pairs whose messages are the same to the byte."""
    found: list[Difference] = []
    equal = 0
    for number, (their, our) in enumerate(zip_longest(theirs, ours), 1):
        if their is None or our is None:
            found.append(Difference(number, "", "only they send it" if our is None else "only we send it"))
            continue
        found += _differences(number, their, our)
        equal += _messages(their) == _messages(our)
    return Comparison(item, len(theirs), len(ours), equal, tuple(found))


def _differences(number: int, their: Request, our: Request) -> Iterator[Difference]:
    if their.times != our.times:
        name = "repeated" if our.times == 1 else ""
        yield Difference(number, name, f"sent {their.times} and {our.times} times")
    if _messages(their) != _messages(our):
        yield _of_messages(number, their, our)
    for field in sorted((their.body.keys() | our.body.keys()) - {"messages"}):
        if their.body.get(field) != our.body.get(field):
            yield Difference(number, _name_of(field, their.body, our.body), _shown(field, their.body, our.body))


def _name_of(field: str, theirs: Json, ours: Json) -> str:
    if field == "thinking" and theirs.get(field) == _HOSTED_SWITCH and field not in ours:
        return "hosted switch"
    if field == THINKING_SWITCH and ours.get(field) == _THINKING_OFF and field not in theirs:
        return "thinking off"
    return ""


def _of_messages(number: int, their: Request, our: Request) -> Difference:
    theirs, ours = _messages(their), _messages(our)
    at = next((place for place, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), None)
    place = min(len(theirs), len(ours)) if at is None else at
    shown = f"messages: {theirs[max(0, place - 20) : place + 40]!r} and {ours[max(0, place - 20) : place + 40]!r}"
    return Difference(number, _name_of_texts(_contents(their), _contents(our)), shown)


def _name_of_texts(theirs: str, ours: str) -> str:
    if neutralise(theirs) == neutralise(ours):
        return "tags"
    if _EDGES.sub(r"\1\3\4", theirs) == _EDGES.sub(r"\1\3\4", ours):
        return "edges"
    if unicodedata.normalize("NFC", theirs) == unicodedata.normalize("NFC", ours):
        return "composed"
    memory = _MEMORY.search(theirs)
    lost = memory is not None and (not memory[1].strip() or memory[1].startswith("<think>"))
    return "memory kept" if lost and _MEMORY.sub("", theirs, 1) == _MEMORY.sub("", ours, 1) else ""


def _contents(request: Request) -> str:
    """The texts of all messages, each with its role."""
    return orjson.dumps(request.body.get("messages"), option=orjson.OPT_INDENT_2).decode().replace("\\n", "\n")


def _messages(request: Request) -> bytes:
    return orjson.dumps(request.body.get("messages"))


def _shown(field: str, theirs: Json, ours: Json) -> str:
    return f"{field}: {theirs.get(field)!r} and {ours.get(field)!r}"
