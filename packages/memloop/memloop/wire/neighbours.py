"""Drafts and the stored memories that are like them."""

from typing import Annotated

from pydantic import Field

from memloop.wire.base import Integral, Wire
from memloop.wire.memory import MemoryDraft, MemoryItem, Namespace


class StoreNeighbours(Wire):
    """``POST /v1/items/neighbours`` of the store: finds the live memories near each draft.

    ``at_least`` is the least cosine between a draft and a neighbour.
    """

    namespace: Namespace
    drafts: tuple[MemoryDraft, ...] = Field(min_length=1, max_length=100)
    at_least: float = Field(default=0.5, ge=-1.0, le=1.0)
    top_k: Annotated[int, Integral] = Field(default=3, ge=1, le=10)


class Neighbours(Wire):
    """The live memories near each draft, nearest first, in the order of the drafts."""

    neighbours: tuple[tuple[MemoryItem, ...], ...]
