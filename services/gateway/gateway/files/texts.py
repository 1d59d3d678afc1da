"""Stores documents as UTF-8 and loads their chunks one at a time.

One pass over the text finds the chunks' boundaries, which are stored beside it. Later reads with the same chunk size,
including restarts after a crash, need no second tokenisation. These indexes are outside the tenant's quota, so a text
keeps the newest few: with the smallest chunks, one is a third of the text.
"""

import asyncio
import codecs
import sys
from array import array
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Final

from gateway.extract import PAGE_END
from gateway.files.blobs import Blob, Blobs
from gateway.files.storage import Storage
from memloop.ports import Chunk, Span, Splitter
from memloop.profiles import well_formed

_BLOCK_BYTES: Final = 1 << 18
_BLOCKS_HELD: Final = 12
_ENCODE_CHARS: Final = 1 << 20
_INDEX: Final = "chunks-"
_INDEXES_KEPT: Final = 4
"""Those of two tokenizers and two chunk sizes."""
_FORMAT: Final = f"memloop-chunks-3-{sys.byteorder}".encode()


async def store_text(blobs: Blobs, tenant: str, blocks: AsyncIterator[bytes], *, holder: str) -> Blob:
    """Store a text given in blocks of UTF-8. Raises TooLarge over the tenant's quota, and the source's errors."""
    return await blobs.claim(await blobs.written(tenant, blocks), holder=holder)


async def utf8_blocks(document: str) -> AsyncIterator[bytes]:
    """Yield the text in blocks of UTF-8; lone surrogates become U+FFFD."""
    for start in range(0, len(document), _ENCODE_CHARS):
        yield well_formed(document[start : start + _ENCODE_CHARS]).encode()


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """The end of each chunk in characters and bytes, its tokens, and the pages that end before its end.

    24 bytes per chunk. A page ends with a form feed.
    """

    char_ends: "array[int]"
    byte_ends: "array[int]"
    tokens: "array[int]"
    page_ends: "array[int]"

    def dump(self) -> bytes:
        """Serialise the index for the storage."""
        parts = (self.char_ends, self.byte_ends, self.tokens, self.page_ends)
        return b"%b\n%d\n" % (_FORMAT, len(self.tokens)) + b"".join(part.tobytes() for part in parts)

    @classmethod
    def load(cls, raw: bytes) -> "ChunkIndex | None":
        """Parse the output of ``dump``; None if another version or byte order wrote it."""
        kind, count, rest = raw.split(b"\n", 2)
        if kind != _FORMAT:
            return None
        index, at = cls.empty(), 0
        for part in (index.char_ends, index.byte_ends, index.tokens, index.page_ends):
            size = int(count) * part.itemsize
            part.frombytes(rest[at : at + size])
            at += size
        return index

    @classmethod
    def empty(cls) -> "ChunkIndex":
        """Return the index of an empty text."""
        return cls(array("Q"), array("Q"), array("I"), array("I"))

    @classmethod
    def of(cls, blocks: Iterable[bytes], splitter: Splitter, *, chunk_tokens: int) -> "ChunkIndex":
        """Build the index in one pass over blocks of UTF-8. CPU work: run it in a thread."""
        index, at, pages = cls.empty(), 0, 0
        for chunk in splitter.stream(codecs.iterdecode(blocks, "utf-8"), chunk_tokens=chunk_tokens):
            at += len(chunk.text.encode())
            index.char_ends.append(chunk.end)
            index.byte_ends.append(at)
            index.tokens.append(chunk.tokens)
            pages += chunk.text.count(PAGE_END)
            index.page_ends.append(pages)
        return index

    def page_at(self, chunk: int) -> int | None:
        """Return the page on which a chunk begins; None in a text without pages."""
        if not self.page_ends or self.page_ends[-1] == 0:
            return None
        return 1 + (self.page_ends[chunk - 1] if chunk else 0)


class StoredChunks:
    """The ``Chunks`` of a stored text. Holds the index and a few blocks of the text, whatever its size."""

    def __init__(self, storage: Storage, text: Blob, index: ChunkIndex) -> None:
        self._storage = storage
        self._text = text
        self.index = index
        self._held: OrderedDict[int, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self.index.tokens)

    def span(self, index: int) -> Span:
        """See ``Chunks``."""
        ends = self.index.char_ends
        return Span(ends[index - 1] if index else 0, ends[index], self.index.tokens[index])

    async def chunk(self, index: int) -> Chunk:
        """See ``Chunks``."""
        span = self.span(index)
        first = self.index.byte_ends[index - 1] if index else 0
        end = self.index.byte_ends[index]
        numbers = range(first // _BLOCK_BYTES, (end - 1) // _BLOCK_BYTES + 1)
        blocks: list[bytes] = []
        for number in numbers:
            if number not in self._held:
                start = number * _BLOCK_BYTES
                self._held[number] = await self._storage.read(self._text.place, start=start, end=start + _BLOCK_BYTES)
            self._held.move_to_end(number)
            blocks.append(self._held[number])
            while len(self._held) > _BLOCKS_HELD:
                self._held.popitem(last=False)
        joined = b"".join(blocks)
        offset = numbers.start * _BLOCK_BYTES
        raw = joined[first - offset : end - offset]
        return Chunk(index, span.start, span.end, raw.decode(), span.tokens)


async def stored_chunks(
    storage: Storage, text: Blob, splitter: Splitter, *, chunk_tokens: int, keeps_index: bool = True
) -> StoredChunks:
    """Return the text's chunks, with ``keeps_index`` as of ``chunk_index``. Raises as that does."""
    index = await chunk_index(storage, text, splitter, chunk_tokens=chunk_tokens, keeps_index=keeps_index)
    return StoredChunks(storage, text, index)


async def chunk_index(
    storage: Storage, text: Blob, splitter: Splitter, *, chunk_tokens: int, keeps_index: bool
) -> ChunkIndex:
    """Return the text's index. The first caller builds it, and stores it if it ``keeps_index``.

    Raises NotFound, Unavailable.
    """
    name = f"{_INDEX}{splitter.name}-{chunk_tokens}"
    raw = await storage.get(text.place, name)
    index = None if raw is None else ChunkIndex.load(raw)
    if index is None:
        index = await asyncio.to_thread(
            lambda: ChunkIndex.of(storage.blocks(text.place), splitter, chunk_tokens=chunk_tokens)
        )
        if keeps_index:
            await storage.put(text.place, index.dump(), name)
            await storage.keep_newest(text.place, _INDEX, _INDEXES_KEPT)
    return index
