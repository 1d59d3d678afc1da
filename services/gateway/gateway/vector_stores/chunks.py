"""Cuts a file's text into chunks that overlap."""

from collections.abc import Iterable, Iterator
from typing import Final

from gateway.vector_stores.schemas import StaticChunks
from memloop.chunking import EstimatingSplitter
from memloop.wire.memory import MAX_TEXT_CHARS

_PAGE_END: Final = "\f"
_LONGEST: Final = MAX_TEXT_CHARS // 2
"""The characters of a piece: with its overlap it fits the memory store's longest text."""


def chunks_of(blocks: Iterable[str], size: StaticChunks) -> Iterator[str]:
    """Yield the chunks of a text that arrives in blocks; blank ones are left out. CPU work: run it in a thread.

    Each holds at most ``max_chunk_size_tokens`` estimated tokens, of which the first repeat the end of the chunk
    before. Tokens are estimated, because no engine need be there for a search.
    """
    step = size.max_chunk_size_tokens - size.chunk_overlap_tokens
    before = ""
    for piece in _pieces(blocks, step):
        if (chunk := (_end_of(before, size.chunk_overlap_tokens / step) + piece).strip()) and piece.strip():
            yield chunk
        before = piece


def _pieces(blocks: Iterable[str], tokens: int) -> Iterator[str]:
    for chunk in EstimatingSplitter().stream(blocks, chunk_tokens=tokens):
        text = chunk.text.replace(_PAGE_END, "\n")
        for start in range(0, len(text), _LONGEST):
            yield text[start : start + _LONGEST]


def _end_of(text: str, share: float) -> str:
    """Return the end of the text, from the beginning of a word if there is one."""
    start = len(text) - int(len(text) * share)
    if start == 0:
        return text
    end = text[start:]
    _, space, rest = end.partition(" ")
    return rest if space else end
