"""Parses the rows of a data set for the loops. The columns are described in docs/training.md."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from memloop.ports import Recalled
from memloop.wire.memory import Source


class _Columns(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def of_row(cls, row: Mapping[str, object]) -> Self:
        """Parse a row of a Parquet file. Raises pydantic's ValidationError, which names the column."""
        return cls.model_validate(row)


class _Question(_Columns):
    question: str


class _Golds(_Columns):
    ground_truth: tuple[str, ...] = Field(min_length=1)


class ReadTask(_Columns):
    """A document to read for a question: MemAgent and MemReread."""

    context: str = Field(min_length=1)
    extra_info: _Question
    reward_model: _Golds

    @property
    def question(self) -> str:
        """Return the question."""
        return self.extra_info.question

    @property
    def golds(self) -> tuple[str, ...]:
        """Return the right answers."""
        return self.reward_model.ground_truth


class _Stored(_Columns):
    id: str
    text: str
    valid_from: datetime = datetime(2000, 1, 1, tzinfo=UTC)
    key: str = ""


class _Conversation(_Columns):
    conversation: tuple[Source, ...] = Field(min_length=1)
    memories: tuple[_Stored, ...] = ()


class DecideTask(_Columns):
    """Turns for the memory writer to decide on, and the store's content: MemReader. The gold is a decision in words."""

    extra_info: _Conversation
    reward_model: _Golds

    @property
    def turns(self) -> tuple[Source, ...]:
        """Return the conversation, oldest first."""
        return self.extra_info.conversation

    @property
    def memories(self) -> tuple[Recalled, ...]:
        """Return the searchable memories."""
        return tuple(Recalled(each.id, each.text, each.valid_from, each.key) for each in self.extra_info.memories)

    @property
    def gold(self) -> tuple[str, ...]:
        """Return ``add`` and the stored texts, ``buffer``, or ``ignore``."""
        return self.reward_model.ground_truth
