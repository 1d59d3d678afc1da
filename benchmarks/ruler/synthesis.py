"""Makes RULER-HQA items of any size from a HotpotQA file, the evidence of each item at places of its own.

An item holds its question's own paragraphs (ten in the distractor setting) and random others. The published sets used
one permutation for all items of a size, so that evidence always stood in the same slots; here each item has its own.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import BaseModel, Field, ValidationError, field_validator

from benchmarks.running.json_rows import DataError, rows
from memloop.wire.chat import Json


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One document of an item."""

    title: str
    text: str


class HotpotQuestion(BaseModel):
    """A row of a HotpotQA file, in the published shape or in that of the Hugging Face data set."""

    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    context: tuple[tuple[str, tuple[str, ...]], ...] = Field(min_length=1)
    supporting_facts: tuple[tuple[str, int], ...] = Field(min_length=1)

    @field_validator("context", "supporting_facts", mode="before")
    @classmethod
    def _as_pairs(cls, value: object) -> object:
        """Columns become rows: ``{"title": […], "sentences": […]}`` is a list of pairs."""
        if not isinstance(value, dict):
            return value
        columns = cast(dict[str, list[object]], value)
        other = columns.get("sentences", columns.get("sent_id", []))
        return list(zip(columns.get("title", []), other, strict=True))

    @property
    def paragraphs(self) -> dict[str, Paragraph]:
        """Its own paragraphs by title."""
        return {title: Paragraph(title, "".join(sentences).strip()) for title, sentences in self.context}

    @property
    def evidence(self) -> frozenset[str]:
        """The titles that hold the answer's facts."""
        return frozenset(title for title, _ in self.supporting_facts)


def load_questions(path: Path) -> list[HotpotQuestion]:
    """All questions of a file, JSON or JSONL. Raises DataError."""
    return [_question(row, path, line) for line, row in rows(path)]


def _question(row: object, path: Path, line: int) -> HotpotQuestion:
    try:
        question = HotpotQuestion.model_validate(row)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'row'}: {fault['msg']}" for fault in error.errors())
        raise DataError(f"{path}, line {line}: {faults}") from error
    if missing := question.evidence - question.paragraphs.keys():
        raise DataError(f"{path}, line {line}: the context has no paragraph {min(missing)!r}, which holds evidence")
    return question


def synthesise(questions: Sequence[HotpotQuestion], *, documents: int, seed: int, count: int) -> Iterator[Json]:
    """Rows of RULER-HQA for the first ``count`` questions, each with exactly ``documents`` documents.

    ``evidence`` holds the numbers (from 1) of the documents with the facts. Raises DataError when the file has too few
    paragraphs, or a question more evidence than ``documents``.
    """
    pool = list(
        {title: paragraph for question in questions for title, paragraph in question.paragraphs.items()}.values()
    )
    if documents > len(pool):
        raise DataError(f"{documents} documents are asked for, and the file has {len(pool)} different paragraphs")
    for index, question in enumerate(questions[:count]):
        rng = random.Random(f"{seed} {documents} {index}")
        yield _row(index, question, _documents(question, pool, documents, rng))


def _documents(
    question: HotpotQuestion, pool: Sequence[Paragraph], documents: int, rng: random.Random
) -> list[Paragraph]:
    """The evidence first, then its neighbours, then strangers; cut to size and shuffled."""
    own = question.paragraphs
    if len(question.evidence) > documents:
        raise DataError(f"{question.question!r} has evidence in more than {documents} documents")
    chosen = sorted(own.values(), key=lambda paragraph: paragraph.title not in question.evidence)[:documents]
    drawn = rng.sample(pool, min(len(pool), documents + len(own)))
    strangers = [paragraph for paragraph in drawn if paragraph.title not in own]
    chosen += strangers[: documents - len(chosen)]
    rng.shuffle(chosen)
    return chosen


def _row(index: int, question: HotpotQuestion, documents: Sequence[Paragraph]) -> Json:
    numbered = list(enumerate(documents, 1))
    return {
        "index": index,
        "input": question.question,
        "context": "\n\n".join(f"Document {number}:\n{each.title}\n{each.text}" for number, each in numbered),
        "answers": [question.answer],
        "num_docs": len(documents),
        "evidence": [number for number, each in numbered if each.title in question.evidence],
    }
