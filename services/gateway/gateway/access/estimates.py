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
_END: Final = object()
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


def _parts(asked: object) -> Iterator[_Part]:
    """Texts, and token ids where a client sends those. Pictures and the like are not counted before the answer."""
    levels = [iter((asked,))]
    while levels:
        value = next(levels[-1], _END)
        if value is _END:
            levels.pop()
        elif isinstance(value, str | int):
            yield value
        elif len(levels) == _MOST_LEVELS:
            continue
        elif isinstance(value, list | tuple):
            levels.append(iter(cast(Sequence[object], value)))
        elif isinstance(value, dict):
            levels.append(map(cast(dict[str, object], value).get, _READ_FIELDS))
