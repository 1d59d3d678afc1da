"""Turns that are kept word for word because the memory writer gave no usable decision on them.

Nothing that a user says is lost because a model replies badly. Such turns are memories like others, of the type
``KeptTurn``: they are searched and recalled, with their speaker, date and source. A long turn is cut into pieces that
the store's embedding model reads whole. The key of a piece is its place in its write, so no other memory updates it,
and the turns can be put together again for a later decision.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Final

from memloop.wire.errors import NotFound
from memloop.wire.memory import MemoryDraft, MemoryItem, MemoryType, Source
from memloop.wire.memory_events import MemoryEvent
from memloop_clients.store import StoreClient

KEPT: Final[MemoryType] = "KeptTurn"
_PIECE_BYTES: Final = 800
"""About 200 tokens of prose; MiniLM reads 256."""
_MOST_PIECES: Final = 128
"""Of the turns of one decision; pieces of more text are longer."""


def kept_drafts(turns: Sequence[Source], *, key: str) -> Iterator[tuple[Source, MemoryDraft]]:
    """Yield a memory for each piece of each turn, with the piece as a turn. ``key`` names the decision in its store."""
    size = max(_PIECE_BYTES, sum(len(turn.content.encode("utf-8", "surrogatepass")) for turn in turns) // _MOST_PIECES)
    for place, turn in enumerate(turns):
        name = turn.name or (None if turn.role == "user" else turn.role)
        for number, text in enumerate(_pieces(turn.content, size)):
            piece = turn.model_copy(update={"content": text, "name": name})
            place_of_piece = f"{key}:{place:04}:{number:04}"
            yield (
                piece,
                MemoryDraft(key=place_of_piece, value=piece.said(), memory_type=KEPT, source=piece),
            )


def parts_of(kept: Iterable[MemoryItem]) -> Iterator[tuple[tuple[Source, ...], tuple[MemoryItem, ...]]]:
    """Yield the turns of each decision that was not usable, put together again, and their memories, in order."""
    ordered = sorted((item for item in kept if item.sources), key=lambda item: item.key)
    for _, found in groupby(ordered, key=lambda item: item.key.rsplit(":", 2)[0]):
        items = tuple(found)
        turns = groupby(items, key=lambda item: item.key.rpartition(":")[0])
        yield tuple(_joined([item.sources[0] for item in pieces]) for _, pieces in turns), items


async def still_kept(event: MemoryEvent, store: StoreClient, tenant: str) -> tuple[MemoryItem, ...]:
    """Return the kept memories of the write that are as they were written: not edited, replaced or deleted."""
    found: list[MemoryItem] = []
    for written in event.memories:
        if written.item.memory_type == KEPT:
            with suppress(NotFound):
                item = await store.item(written.item.id, tenant=tenant)
                is_live = item.status == "activated" and item.valid_to is None
                found += [item] if is_live and item.version == written.item.version else []
    return tuple(found)


def _joined(pieces: Sequence[Source]) -> Source:
    first = pieces[0]
    name = None if first.name == first.role else first.name
    return first.model_copy(update={"content": "".join(piece.content for piece in pieces), "name": name})


def _pieces(text: str, size: int) -> Iterator[str]:
    """Cut the text into pieces of about ``size`` bytes that join to it, after a sentence or a word where it can."""
    chars = max(4, size * len(text) // max(1, len(text.encode("utf-8", "surrogatepass"))))
    sentence = rf".{{{chars // 2},{chars - 2}}}(?:[.!?\u2026\u3002\uff01\uff1f]\s|\n)"
    cut = re.compile(rf"{sentence}|.{{1,{chars - 1}}}(?:\s|\Z)|.{{1,{chars}}}", re.DOTALL)
    return (found.group() for found in cut.finditer(text) if found.group().strip())
