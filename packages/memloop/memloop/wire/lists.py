"""The shapes of lists: all there is, and pages that go on after a cursor or an id; and of what was deleted."""

from collections.abc import Iterable, Sequence
from typing import Generic, Literal, Self, TypeVar

from memloop.wire.base import Wire

Row = TypeVar("Row")


class Listed(Wire, Generic[Row]):
    """A list, as OpenAI's API has it. ``has_more``: there are rows behind these."""

    object: Literal["list"] = "list"
    data: tuple[Row, ...]
    has_more: bool = False


class Deleted(Wire):
    """The answer to a deletion. Each kind of thing names itself in ``object``."""

    id: str
    deleted: bool = True


class CursorPage(Listed[Row], Generic[Row]):
    """A page of a list; ``next_cursor`` leads to the next one, and is None on the last."""

    next_cursor: str | None = None


class ListPage(Listed[Row], Generic[Row]):
    """A page of a list that goes on after an id."""

    first_id: str | None = None
    last_id: str | None = None

    @classmethod
    def of(cls, data: Iterable[Row], ids: Sequence[str], *, has_more: bool) -> Self:
        """Return the page of these rows, whose ids are in the same order."""
        first, last = (ids[0], ids[-1]) if ids else (None, None)
        return cls(data=tuple(data), first_id=first, last_id=last, has_more=has_more)
