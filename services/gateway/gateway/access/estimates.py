"""Estimates the tokens of a request before the engine counts them."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias, cast

from memloop.chunking import EstimatingSplitter
from memloop.ports import Splitter

_SHORT_CHARS: Final = 4_000
_LONG_CHARS: Final = 200_000
_FEW_PARTS: Final = 10_000
"""So many are collected on the event loop, the rest in a thread."""
_MOST_LEVELS: Final = 16
"""A text in a content part of a message lies five deep. No API has texts much deeper, and the engine counts anyway."""
_READ_FIELDS: Final = ("text", "content")
_Part: TypeAlias = str | int


async def estimate_tokens(asked: object, splitter: Splitter) -> int:
    """Tokens of all texts in it, by the served model's tokenizer; of a very long one on the safe side, by its bytes.

    Takes parsed JSON of any depth and size, in time linear to it.
    """
    walk = _parts(asked)
    parts = list(islice(walk, _FEW_PARTS))
    if len(parts) == _FEW_PARTS:
        parts += await asyncio.to_thread(list, walk)
    texts = [part for part in parts if isinstance(part, str)]
    text, given = "\n".join(texts), len(parts) - len(texts)
    if len(text) <= _SHORT_CHARS:
        return given + splitter.count(text)
    counting = splitter if len(text) <= _LONG_CHARS else EstimatingSplitter()
    return given + await asyncio.to_thread(counting.count, text)


def _parts(asked: object, levels: int = _MOST_LEVELS) -> Iterator[_Part]:
    """Texts, and token ids where a client sends those. Pictures and the like are not counted before the answer."""
    if isinstance(asked, str | int):
        yield asked
    elif levels and isinstance(asked, list | tuple):
        for one in cast(Sequence[object], asked):
            yield from _parts(one, levels - 1)
    elif levels and isinstance(asked, dict):
        for name in _READ_FIELDS:
            yield from _parts(cast(dict[str, object], asked).get(name), levels - 1)
