"""Gives the result of a long read in parts that fit its client: the answer, its evidence, the steps, the memory.

The parts of a text are joined by their client. A cursor names the read and the place in it; the read is stored, so no
part is read from the document again.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from gateway.mcp.fitting import place_of
from memloop.wire.errors import Unprocessable
from memloop.wire.long_read import Evidence, LongRead, SubQuestion
from memloop_service.http import json_text

_PIECE_CHARS: Final = 40
"""Short, so that a piece fits beside the other fields whatever JSON makes of its characters."""
_CURSOR_CHARS: Final = 100
_Piece: TypeAlias = tuple[str, str | Evidence | SubQuestion]
"""A field of the result, and a text or an entry of it."""


class ReadPart(LongRead):
    """The result of a read, or a part of a long one."""

    next_cursor: str | None = None


def read_at(cursor: str) -> tuple[str, int]:
    """Return the read and the place in it that a cursor of ours names. Raises Unprocessable."""
    place, _, read_id = cursor.partition(".")
    if not read_id:
        raise Unprocessable("cursor must be the next_cursor of an earlier result.", param="cursor")
    return read_id, place_of(place)


def part_of(record: LongRead, start: int, *, most_chars: int) -> ReadPart:
    """Return the result from this place on, as much of it as fits; at least one piece."""
    bare = record.model_copy(update={"output_text": "", "memory": "", "evidence": (), "subquestions": ()})
    left, pieces = most_chars - _size(bare) - _CURSOR_CHARS, list(_pieces(record))
    end = start
    for _, value in pieces[start:]:
        left -= len(json_text(value)) if isinstance(value, str) else _size(value) + 1
        if left < 0 and end > start:
            break
        end += 1
    taken = pieces[start:end]
    texts = {name: "".join(str(value) for field, value in taken if field == name) for name in ("output_text", "memory")}
    lists = {name: tuple(value for field, value in taken if field == name) for name in ("evidence", "subquestions")}
    following = f"{end}.{record.id}" if end < len(pieces) else None
    return ReadPart(**dict(bare.model_copy(update={**texts, **lists})), next_cursor=following)


def _size(model: LongRead | Evidence | SubQuestion) -> int:
    return len(model.model_dump_json(exclude_none=True))


def _pieces(record: LongRead) -> Iterator[_Piece]:
    yield from (("output_text", piece) for piece in _cut(record.output_text))
    yield from (("evidence", entry) for entry in record.evidence)
    yield from (("subquestions", entry) for entry in record.subquestions)
    yield from (("memory", piece) for piece in _cut(record.memory))


def _cut(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE_CHARS):
        yield text[start : start + _PIECE_CHARS]
