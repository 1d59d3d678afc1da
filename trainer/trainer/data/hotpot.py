"""Reads questions in the shape of HotpotQA (arXiv 1809.09600) and 2WikiMultihopQA, each with its own paragraphs."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from trainer.data.json_rows import DataError, rows


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One document of an item."""

    title: str
    text: str


class HotpotQuestion(BaseModel):
    """A row of a HotpotQA file, in the published shape or the Hugging Face data set's; the ID is optional."""

    model_config = ConfigDict(populate_by_name=True)

    id: str = Field(default="", alias="_id")
    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    context: tuple[tuple[str, tuple[str, ...]], ...] = Field(min_length=1)
    supporting_facts: tuple[tuple[str, int], ...] = Field(min_length=1)

    @field_validator("context", "supporting_facts", mode="before")
    @classmethod
    def _as_pairs(cls, value: object) -> object:
        """Convert columns to rows: ``{"title": […], "sentences": […]}`` becomes a list of pairs."""
        if not isinstance(value, dict):
            return value
        columns = cast(dict[str, list[object]], value)
        other = columns.get("sentences", columns.get("sent_id", []))
        return list(zip(columns.get("title", []), other, strict=True))

    @property
    def paragraphs(self) -> dict[str, Paragraph]:
        """Return its own paragraphs by title."""
        return {title: Paragraph(title, "".join(sentences).strip()) for title, sentences in self.context}

    @property
    def evidence(self) -> frozenset[str]:
        """Return the titles of the paragraphs with the answer's facts."""
        return frozenset(title for title, _ in self.supporting_facts)


def questions(path: Path) -> Iterator[HotpotQuestion]:
    """Yield the questions of a file (JSON or JSONL) one at a time. Raises DataError."""
    return (_question(row, path, line) for line, row in rows(path))


def _question(row: object, path: Path, line: int) -> HotpotQuestion:
    try:
        question = HotpotQuestion.model_validate(row)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'row'}: {fault['msg']}" for fault in error.errors())
        raise DataError(f"{path}, line {line}: {faults}") from error
    if missing := question.evidence - question.paragraphs.keys():
        raise DataError(f"{path}, line {line}: the context has no paragraph {min(missing)!r}, which holds evidence")
    return question
