"""Statements and the passages that they are compared with."""

from typing import Annotated

from pydantic import Field

from memloop.wire.base import Wire

MOST_STATEMENTS = 8
MOST_PASSAGES = 8
MOST_CHARS = 2000

ComparedText = Annotated[str, Field(min_length=1, max_length=MOST_CHARS)]


class Comparison(Wire):
    """A statement and the passages that may say the same."""

    statement: ComparedText
    passages: tuple[ComparedText, ...] = Field(min_length=1, max_length=MOST_PASSAGES)


class StoreSimilarities(Wire):
    """``POST /v1/similarities`` of the store: compares texts by its embedding model. Nothing of them is stored."""

    comparisons: tuple[Comparison, ...] = Field(min_length=1, max_length=MOST_STATEMENTS)


class Similarities(Wire):
    """For each statement the cosine with each of its passages, in order."""

    similarities: tuple[tuple[float, ...], ...]
