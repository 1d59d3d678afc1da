"""Reads items of RULER-HQA, of RULER's own tasks, and of MemReread's sets from a user's files.

Sources: MemAgent (arXiv 2507.02259), its evaluation sets; RULER (arXiv 2404.06654), its tasks; MemReread
(arXiv 2605.10268), its 2WikiMultiHopQA sets by length and its questions about a whole document.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, TypeAlias, cast

from pydantic import BaseModel, Field, ValidationError

from trainer.data.hotpot import questions
from trainer.data.json_rows import DataError, rows

HQA = "hqa"
WIKI = "2wiki"
GLOBAL = "global_reasoning"
QUESTION_ANSWERING = frozenset({HQA, WIKI, GLOBAL, "qa_1"})
DEFAULT_SUFFIXES: Mapping[str, str] = MappingProxyType(
    {WIKI: " Give the answer itself, in a few words.", GLOBAL: " Write the number in digits."}
)
"""What MemReread's evaluation does with the questions of its sets, in our words."""
OOD_TASKS = (
    *(f"niah_{kind}_{number}" for kind in ("single", "multikey") for number in (1, 2, 3)),
    "niah_multivalue",
    "niah_multiquery",
    "vt",
    "fwe",
    "qa_1",
)
_TASK = re.compile(rf"(?<![a-z0-9])({'|'.join(OOD_TASKS)})(?![a-z0-9])")
_NUMBER = re.compile(r"(?<!\d)\d+(?!\d)")

ItemKey: TypeAlias = tuple[str, int, int, str]
"""Task, size, index and digest."""


@dataclass(frozen=True, slots=True)
class Item:
    """A document with a question. ``size`` counts documents for RULER-HQA, else nominal tokens.

    ``kind`` is the data's own class of the question, its level and type ("hard, bridge"); empty if it names none.
    """

    task: str
    size: int
    index: int
    question: str
    context: str
    golds: tuple[str, ...]
    kind: str = ""

    @property
    def key(self) -> ItemKey:
        """Return the key that identifies the item; changed data gets another key."""
        digest = hashlib.sha256(f"{self.question}\0{self.context}".encode("utf-8", "surrogatepass"))
        return self.task, self.size, self.index, digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Source:
    """A file, with task and size if its rows lack them (RULER's own tasks)."""

    path: Path
    task: str | None = None
    size: int | None = None


def source_of(given: str) -> Source:
    """Parse ``PATH`` or ``TASK:SIZE=PATH``; a bare path's last parts give task and size.

    Raises DataError for a task outside RULER.
    """
    named = re.fullmatch(r"(\w+):(\d+)=(.+)", given)
    if named is None:
        return _named_by_path(Path(given))
    task, size, path = named.groups()
    if task not in OOD_TASKS:
        raise DataError(f"{given}: the task is one of {', '.join(OOD_TASKS)}")
    return Source(Path(path), task, int(size))


def _named_by_path(path: Path) -> Source:
    """Derive the innermost task and number of a path such as ``8192/niah_single_1/validation.jsonl`` or
    ``eval_vt_8192.json``.
    """
    task = size = None
    for part in path.parts[-3:]:
        tasks = _TASK.findall(part)
        task = tasks[-1] if tasks else task
        numbers = _NUMBER.findall(_TASK.sub("", part))
        size = int(numbers[-1]) if numbers else size
    return Source(path, task, size)


_Text = Annotated[str, Field(min_length=1)]
_Answers = Annotated[tuple[_Text, ...], Field(min_length=1)]


class _HqaRow(BaseModel):
    context: _Text
    input: _Text
    answers: _Answers
    num_docs: int = Field(gt=0)
    index: int


class _WikiRow(BaseModel):
    context: _Text
    input: _Text
    answers: _Answers
    target_length: int = Field(gt=0)
    index: int


class _GlobalRow(BaseModel):
    context: _Text
    question: _Text
    golden: _Answers
    context_length: str = Field(pattern=r"^\d+[kKmM]$")
    id: str = Field(pattern=r"\d$")


class _Kind(BaseModel):
    """What a row says of its question, if it does; other values than texts are not for people."""

    level: object = None
    type: object = None

    def named(self) -> str:
        return ", ".join(each for each in (self.level, self.type) if isinstance(each, str) and each)


class _OodRow(BaseModel):
    context: _Text
    input: _Text
    outputs: _Answers
    index: int


def documents_by_number(hotpot: Path) -> tuple[str, ...]:
    """Return the paragraphs of a HotpotQA file in the order of MemAgent's numbers: each once, sorted by code points.

    Raises DataError.
    """
    return tuple(sorted({f"{title}\n{''.join(text)}" for asked in questions(hotpot) for title, text in asked.context}))


def items(
    sources: Sequence[Source],
    *,
    limit: int | None = None,
    documents: Sequence[str] = (),
    suffixes: Mapping[str, str] = DEFAULT_SUFFIXES,
) -> Iterator[Item]:
    """Yield all items, at most ``limit`` per task and size. ``documents`` as of ``documents_by_number``.

    ``suffixes`` follow the questions of a task.

    Raises DataError, also for a duplicate item.
    """
    seen: set[ItemKey] = set()
    counts: Counter[tuple[str, int]] = Counter()
    for source in sources:
        for line, row in rows(source.path):
            item = _item(row, source, line, documents)
            item = replace(item, question=item.question + suffixes.get(item.task, ""))
            if item.key in seen:
                raise DataError(f"{source.path}, line {line}: item {item.index} of {item.task} comes twice")
            seen.add(item.key)
            counts[item.task, item.size] += 1
            if limit is None or counts[item.task, item.size] <= limit:
                yield item


def _item(row: object, source: Source, line: int, documents: Sequence[str]) -> Item:
    named = cast(dict[str, object], row) if isinstance(row, dict) else dict[str, object]()
    if isinstance(numbers := named.get("context"), list):
        row = {**named, "context": _joined(cast(list[object], numbers), documents, f"{source.path}, line {line}")}
    try:
        if "outputs" in named:
            return _ood_item(_OodRow.model_validate(row), source)
        if "golden" in named:
            return _global_item(_GlobalRow.model_validate(row), _Kind.model_validate(row))
        if "target_length" in named:
            return _wiki_item(_WikiRow.model_validate(row), _Kind.model_validate(row))
        hqa = _HqaRow.model_validate(row)
        kind = _Kind.model_validate(row).named()
        return Item(HQA, hqa.num_docs, hqa.index, hqa.input, hqa.context, hqa.answers, kind)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'row'}: {fault['msg']}" for fault in error.errors())
        raise DataError(f"{source.path}, line {line}: {faults}") from error


def _joined(numbers: Sequence[object], documents: Sequence[str], place: str) -> str:
    """Return the text of documents that a row names by number, joined as MemAgent's code does. Raises DataError.

    Its files of more than 10,000 documents have numbers in the place of texts.
    """
    if not documents:
        raise DataError(
            f"{place}: the context holds numbers of documents; --hotpot FILE gives their texts"
            " (memloop-evaluate fetch hotpotqa)"
        )
    texts: list[str] = []
    for number in numbers:
        if not isinstance(number, int) or not 0 <= number < len(documents):
            raise DataError(f"{place}: context: no document {number!r}; --hotpot has 0 to {len(documents) - 1}")
        texts.append(f"Document {len(texts) + 1}:\n{documents[number]}")
    return "\n\n".join(texts)


def _wiki_item(row: _WikiRow, kind: _Kind) -> Item:
    """Build a question on several documents."""
    return Item(WIKI, row.target_length, row.index, row.input, row.context, row.answers, kind.named())


def _global_item(row: _GlobalRow, kind: _Kind) -> Item:
    """Build a question about the whole document."""
    thousands = 1024 if row.context_length[-1] in "kK" else 1024 * 1024
    size = int(row.context_length[:-1]) * thousands
    name, _, number = row.id.rpartition("_")
    index = int(_NUMBER.findall(number)[-1])
    return Item(GLOBAL, size, index, row.question, row.context, row.golden, kind.named() or name)


def _ood_item(row: _OodRow, source: Source) -> Item:
    if source.task is None or not source.size:
        raise DataError(f"{source.path}: its name holds no task and size; give it as niah_single_1:8192={source.path}")
    return Item(source.task, source.size, row.index, row.input, row.context, row.outputs)
