"""Makes RULER's tasks from our own prose: needles, chains of variables, frequent words (arXiv 2404.06654).

    niah_single_1/2/3       one needle: a number for a word, in repeated noise / in prose; a UUID in prose
    niah_multikey_1/2/3     one asked for among few others / among nothing but needles / the same with UUIDs
    niah_multivalue         four values of one key           niah_multiquery   four keys
    vt                      which variables hold a value, along a chain of assignments, among others' chains
    fwe                     the three most frequent coded words
    qa_1/2                  a question on one passage / on two, among others' passages (:mod:`trainer.data.ruler_qa`)

Needles stand at any place with equal chance. Each task has RULER's kind of haystack, the noise or an author's prose;
``haystack`` replaces it, except in tasks whose haystack is needles, words or passages.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, filterfalse, islice, pairwise
from typing import Literal

from memloop.wire.chat import Json
from trainer.data.encyclopedia import WHOLE_NAMES, made_up_name
from trainer.data.rows import reading_row
from trainer.data.ruler_qa import asked_passages
from trainer.tiny.prose import Haystack, Prose, book, plant
from trainer.tiny.prose import haystack as prose_of

Count = Callable[[str], int]
"""Counts the tokens of a text."""
_CODED = 400
_TRIES = 24
_LEAST_FILLED = 0.8
"""A share of the tokens that are asked for: a shorter item would be counted among the longer ones."""
_ORDERS = {"fwe": "the most frequent first"}
_ORDER = "in the order of the text"

Split = Literal["validation", "train"]


@dataclass(frozen=True, slots=True)
class RulerItem:
    """One item in RULER's shape: an answer must name all of ``outputs``.

    They stand in the order of the document; those of ``fwe`` by their frequency.
    """

    task: str
    input: str
    context: str
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Needles:
    """``asked`` keys of ``values`` values each, ``others`` keys that are not asked for; filler, and kind of value."""

    keys: int = 1
    values: int = 1
    others: int = 0
    prose: bool = True
    uuids: bool = False
    packed: bool = False


_TASKS: Mapping[str, _Needles] = {
    "niah_single_1": _Needles(prose=False),
    "niah_single_2": _Needles(),
    "niah_single_3": _Needles(uuids=True),
    "niah_multikey_1": _Needles(others=3),
    "niah_multikey_2": _Needles(packed=True),
    "niah_multikey_3": _Needles(packed=True, uuids=True),
    "niah_multivalue": _Needles(values=4),
    "niah_multiquery": _Needles(keys=4),
}
TASKS = (*_TASKS, "vt", "fwe", "qa_1", "qa_2")


def ruler_items(
    task: str,
    *,
    tokens: int,
    count: int,
    seed: int,
    tokens_of: Count,
    haystack: Haystack | None = None,
    split: Split = "validation",
) -> Iterator[RulerItem]:
    """Yield ``count`` items of ``tokens`` tokens, up to a fifth fewer; the splits of a seed share no item.

    Raises ValueError for an unknown task, and for a number of tokens that its items cannot have.
    """
    if task not in TASKS:
        raise ValueError(f"there is no task {task!r}; the tasks are {', '.join(TASKS)}")
    for index in range(count):
        name = f"{seed} {task} {tokens} {index}" + (" train" if split == "train" else "")
        yield _fitted(partial(_item, task, name, haystack), tokens, tokens_of)


def as_ruler_rows(items: Sequence[RulerItem]) -> Iterator[Json]:
    """Yield the items in the format of RULER's files."""
    for index, item in enumerate(items):
        yield {"index": index, "input": item.input, "context": item.context, "outputs": list(item.outputs)}


def as_reading_rows(items: Iterable[RulerItem]) -> Iterator[Json]:
    """Yield the items as tasks for RL (``schemas.READING``).

    Several outputs become one gold answer, joined by commas: a reward that accepts any one would teach partial answers.
    The question asks for their order, without which a right answer in another order would earn nothing.
    """
    for index, item in enumerate(items):
        yield reading_row(
            data_source=f"ruler/{item.task}",
            index=index,
            id_=f"{item.task}-{index}",
            question=_ordered(item),
            answers=[", ".join(item.outputs)],
            context=item.context,
            agent="memagent",
        )


def _ordered(item: RulerItem) -> str:
    """Return the question, and the order in which it wants several outputs."""
    if len(item.outputs) == 1:
        return item.input
    return f"{item.input} Separate them with commas, {_ORDERS.get(item.task, _ORDER)}."


def _fitted(make: Callable[[int], RulerItem], tokens: int, tokens_of: Count) -> RulerItem:
    """Search the longest item that fits, within a few percent: an item's tokens grow with its characters.

    Raises ValueError if it has less than 80 % of the tokens.
    """
    low, high, best = 0, 8 * tokens, None
    for _ in range(_TRIES):
        chars = (low + high) // 2
        item = make(chars)
        size = tokens_of(item.context)
        if size <= tokens:
            low, best = chars, item
            if size >= 0.97 * tokens:
                break
        else:
            high = chars
    if best is None:
        raise ValueError(f"an item of this task does not fit {tokens} tokens")
    if (longest := tokens_of(best.context)) < _LEAST_FILLED * tokens:
        raise ValueError(f"{best.task}: the longest item that fits {tokens} tokens has only {longest}")
    return best


def _item(task: str, name: str, chosen: Haystack | None, chars: int) -> RulerItem:
    """Build the item with ``chars`` characters of filler; the needles do not depend on the length."""
    rng = random.Random(name)
    match task:
        case "vt":
            return _chains(rng, chars, _prose(chosen, "repeated"))
        case "fwe":
            return _frequent(rng, chars)
        case "qa_1" | "qa_2":
            question, context, answer = asked_passages(rng, chars, hops=int(task[-1]))
            return RulerItem(task, question, context, (answer,))
        case _:
            shape = _TASKS[task]
            return _needles(task, shape, rng, chars, _prose(chosen, None if shape.prose else "repeated"))


def _prose(chosen: Haystack | None, usual: Haystack | None) -> Prose:
    """Return the chosen haystack, else the task's own: None for the novel's part that training reads too."""
    name = chosen or usual
    return prose_of(name) if name else book("train")


def _needles(task: str, shape: _Needles, rng: random.Random, chars: int, prose: Prose) -> RulerItem:
    # Drawing them all for each try would take longer than the rest; few items have more needles than these.
    drawn = rng.sample(range(100_000), 20_000)
    names = chain(drawn, filterfalse(set(drawn).__contains__, range(WHOLE_NAMES)))
    asked = [f"{made_up_name(next(names))} lamp" for _ in range(shape.keys)]
    held = {key: [_value(rng, shape) for _ in range(shape.values)] for key in asked}
    sentences = [_needle(key, value) for key, values in held.items() for value in values]
    others = chars // 60 if shape.packed else shape.others
    sentences += [_needle(f"{made_up_name(name)} lamp", _value(rng, shape)) for name in islice(names, others)]
    rng.shuffle(sentences)
    context = " ".join(sentences) if shape.packed else _planted(rng, chars, sentences, prose)
    which = " and ".join(f"the {key}" for key in asked)
    many = shape.keys * shape.values > 1
    question = f"What {'are all the codes' if many else 'is the code'} of {which}?"
    needles = {_needle(key, value): value for key, values in held.items() for value in values}
    return RulerItem(task, question, context, tuple(needles[each] for each in sentences if each in needles))


def _needle(key: str, value: str) -> str:
    return f"The code of the {key} is {value}."


def _value(rng: random.Random, shape: _Needles) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4)) if shape.uuids else str(rng.randrange(10**6, 10**7))


def _planted(rng: random.Random, chars: int, sentences: list[str], prose: Prose) -> str:
    text = prose.slice(rng, chars)
    while len(text) < chars:
        text += "\n\n" + prose.slice(rng, chars - len(text))
    return plant(rng, text, sentences)


def _chains(rng: random.Random, chars: int, prose: Prose, *, chains: int = 3, hops: int = 4) -> RulerItem:
    """Build interleaved chains of assignments, each in order; the question asks for the first chain's value."""
    names = iter(rng.sample(range(100_000), chains * (hops + 1)))
    told: list[list[str]] = []
    first: tuple[str, ...] = ()
    values = rng.sample(range(10_000, 100_000), chains)
    for value in values:
        variables = [f"VAR_{made_up_name(next(names)).upper()}" for _ in range(hops + 1)]
        first = first or tuple(variables)
        links = zip(variables[1:], variables, strict=False)
        told.append([f"{variables[0]} = {value}.", *(f"{new} = {old}." for new, old in links)])
    sentences: list[str] = []
    while any(told):
        chain = rng.choice([each for each in told if each])
        sentences.append(chain.pop(0))
    context = _planted(rng, chars, sentences, prose)
    return RulerItem("vt", f"Which variables hold the value {values[0]}? Name all of them.", context, first)


def _frequent(rng: random.Random, chars: int) -> RulerItem:
    """Draw coded words by Zipf's law with exponent 2, as in RULER; the question asks for the three most frequent."""
    words = [made_up_name(number).lower() for number in rng.sample(range(100_000), _CODED)]
    weights = [1 / (rank + 1) ** 2 for rank in range(_CODED)]
    drawn = rng.choices(words, weights, k=max(12, chars // 9))
    first, second, third = words[:3]
    drawn += [first] * 6 + [second] * 4 + [third] * 2
    counts = Counter(drawn).most_common(4)
    while tied := [word for (word, times), (_, next_times) in pairwise(counts) if times == next_times]:
        drawn.append(tied[0])
        counts = Counter(drawn).most_common(4)
    rng.shuffle(drawn)
    asked = "Which three coded words come most often?"
    return RulerItem("fwe", asked, " ".join(drawn), tuple(word for word, _ in counts[:3]))
