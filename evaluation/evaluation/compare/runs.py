"""Reads the results of a run as scores by question."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Final, TypeAlias

from pydantic import TypeAdapter, ValidationError

from evaluation.memory.records import (
    ENTRIES,
    Answered,
    AnyEntry,
    Checked,
    Graded,
    Ingested,
    Recalled,
    key_of,
)
from evaluation.ruler.records import Record
from evaluation.ruler.scores import scores_of
from memloop.scoring.lenient import token_f1
from trainer.data.json_rows import DataError

_ABOUT: Final = TypeAdapter(dict[str, Any])
_RULER: Final = TypeAdapter(Record)
_GRADE: Final = {"full": 1.0, "half": 0.5}
_FILE: Final = "results.jsonl"

Question: TypeAlias = Hashable


@dataclass(frozen=True, slots=True)
class Measure:
    """One score of one part of a run, such as ``recall@10`` of category ``multi-hop``."""

    score: str
    category: str


@dataclass(slots=True)
class Run:
    """A run's description, and its scores (0 to 1) by question; one asked with several seeds has its mean."""

    about: Mapping[str, Any]
    scores: dict[Measure, dict[Question, float]] = field(default_factory=dict[Measure, dict[Question, float]])


def read_run(place: Path) -> Run:
    """Read a folder of ``memloop-evaluate memory`` or ``ruler``, or its results file.

    A last line without an end is left out, as a run that was killed leaves it. Raises DataError.
    """
    file = place / _FILE if place.is_dir() else place
    try:
        held = file.read_bytes()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}") from error
    head, *lines = held[: held.rfind(b"\n") + 1].splitlines() or [b""]
    try:
        about = _ABOUT.validate_json(head)
    except ValidationError as error:
        raise DataError(f"{file}, line 1: not the description of a run") from error
    read = _of_memory if "format" in about else _of_ruler
    return Run(about, _means(read(_records(lines, file, ENTRIES if "format" in about else _RULER))))


def _records(lines: Iterable[bytes], file: Path, adapter: TypeAdapter[Any]) -> Iterator[Any]:
    for number, line in enumerate(lines, 2):
        try:
            yield adapter.validate_json(line)
        except ValidationError as error:
            raise DataError(f"{file}, line {number}: not a record") from error


_Scored: TypeAlias = Iterator[tuple[str, Sequence[str], Question, float]]
"""A score's name, its categories, the question, and the value."""


def _of_memory(records: Iterable[AnyEntry]) -> _Scored:
    last = {key_of(record): record for record in records}
    for record in last.values():
        yield from _scored(record)


def _scored(record: AnyEntry) -> _Scored:
    match record:
        case Recalled():
            question = (record.conversation, record.question)
            for k, share in record.turns.items():
                yield f"recall@{k}", record.categories, question, share
        case Answered():
            question = (record.conversation, record.question)
            f1 = token_f1(record.answer, record.golds) if record.error is None else 0.0
            yield f"accuracy, {record.row}", record.categories, question, record.share_right
            yield f"F1, {record.row}", record.categories, question, f1
        case Graded():
            point = (record.conversation, record.session, record.point)
            yield _measured(record), (record.type or "points",), point, _value(record)
        case Ingested() | Checked():
            return


def _measured(record: Graded) -> str:
    """Name the score of a memory point, as the scorecard separates them."""
    if record.interferes:
        return f"false memory resistance, {record.row}"
    return f"updates, {record.row}" if record.counts_as_update else f"extraction, {record.row}"


def _value(record: Graded) -> float:
    if record.interferes:
        return float(record.grade == "missed")
    return float(record.update == "correct") if record.counts_as_update else _GRADE.get(record.grade or "", 0.0)


def _of_ruler(records: Iterable[Record]) -> _Scored:
    for record in {record.key: record for record in records}.values():
        for name, value in scores_of(record).items():
            yield (
                name,
                (f"{record.task}, {record.size}",),
                (record.task, record.size, record.index, record.digest),
                value,
            )


def _means(scored: _Scored) -> dict[Measure, dict[Question, float]]:
    """Average over seeds; ``all`` is the category of every question."""
    values: dict[Measure, dict[Question, list[float]]] = defaultdict(lambda: defaultdict(list))
    for score, categories, question, value in scored:
        for each in ("all", *categories):
            values[Measure(score, each)][question].append(value)
    mean: Callable[[Iterable[float]], float] = fmean
    return {measure: {one: mean(found) for one, found in own.items()} for measure, own in values.items()}
