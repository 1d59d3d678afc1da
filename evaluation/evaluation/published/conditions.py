"""The conditions of the published reading tables: prompts, loop, runs and score, and every difference that stays."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from evaluation.ruler.items import GLOBAL, WIKI
from inference.profile_import.imported import Kind
from inference.profile_import.literals import parse_python
from inference.profile_import.sources import ImportRefused, read_source
from memloop.wire.long_read import Strategy

Reading: TypeAlias = Literal["memagent", "memagent-slime", "memreread"]


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a publication made its table.

    ``prompts`` are read from its checkout; ``score`` is the column of ours that counts as its code does; ``seeds`` are
    its runs; ``answer_tokens`` limits the answer where its code does. ``differences`` are those of every run, by name.
    """

    prompts: Kind
    score: str
    strategy: Strategy = "memagent"
    max_rereads: int = 0
    seeds: tuple[int, ...] = (0,)
    answer_tokens: int | None = None
    differences: Mapping[str, str] = field(default_factory=dict[str, str])


_FAILED: Final = "a read that failed counts as wrong; their code leaves it out of the mean"
_BARE: Final = "an answer of which only articles and punctuation are left scores 0; their code takes it for right"
_LOOPS: Final = (
    "tags of the prompts in documents are made harmless, an empty reply keeps the memory, no chunk splits a character,"
    " white space around question and document stays, no middle is dropped (docs/how-to/parity.md)"
)
_MEMAGENT: Final = {
    "failed reads": _FAILED,
    "bare answers": _BARE,
    "requests": _LOOPS,
    "thinking": "requests switch thinking off; their code leaves it to the template, which has none",
}
READING: Final[Mapping[Reading, Conditions]] = {
    "memagent": Conditions("memagent-table", "published_plain", differences=_MEMAGENT),
    "memagent-slime": Conditions(
        "memagent",
        "published",
        seeds=(1, 2, 3, 4, 5),
        answer_tokens=256,
        differences=_MEMAGENT
        | {
            "prompt": "MemAgent's boxed prompt has a blank after <problem>, which their copy of it lacks",
            "best of 5": "the card prints the best of five runs for each length, which flatters; the mean is beside it",
        },
    ),
    "memreread": Conditions(
        "memreread",
        "published",
        strategy="memreread",
        max_rereads=3,
        differences={
            "failed reads": _FAILED,
            "requests": _LOOPS + "; their client sends each call twice",
            "sample": "every item is read; their script reads a random sample, at most 16 for each of its processes",
        },
    ),
}
DIRECT: Final = Conditions(
    "memagent-direct",
    "published_plain",
    differences={
        "failed reads": _FAILED,
        "bare answers": _BARE,
        "cut": "a document beyond the window loses its own middle; their code cuts the middle out of the whole prompt",
    },
)
"""MemAgent's baselines: the whole document in one prompt."""
DIRECT_WINDOW_TOKENS: Final = 130_000
"""120,000 of the prompt and 10,000 of the reply, as MemAgent's code has them."""
_SUFFIXES: Final[Mapping[str, tuple[str, str]]] = {
    WIKI: ("exp/main/eval_2wikimultihopqa_memreread.py", "item['input']"),
    GLOBAL: ("exp/preliminary/eval_global_reasoning_mem_reread.py", "item['question']"),
}


def question_suffixes(checkout: Path) -> Mapping[str, str]:
    """Return what MemReread's evaluation adds to the questions of its sets, by task. Raises ImportRefused."""
    found: dict[str, str] = {}
    for task, (name, question) in _SUFFIXES.items():
        tree = parse_python(read_source(checkout, name).raw, name)
        texts = [
            node.right.value
            for node in ast.walk(tree)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and ast.unparse(node.left) == question
            if isinstance(node.right, ast.Constant) and isinstance(node.right.value, str)
        ]
        if len(texts) != 1:
            raise ImportRefused(f"{name}: expected one text after {question}; found {len(texts)}")
        found[task] = texts[0]
    return found
