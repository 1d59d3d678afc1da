"""Reads several files as one document: each piece of a file has a label with its name and page.

A file is cut into pieces by itself, so that its index serves every read. Consecutive pieces share a chunk while they
fit. Evidence is searched in the texts without labels, where a sentence may cross the end of a piece.
"""

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gateway.files import ChunkIndex, ReadableFile, Storage, StoredChunks, chunk_index
from gateway.long_read.places import Place, page_of
from memloop.evidence.findings import TextSpan
from memloop.ports import Chunk, Chunks, Span, Splitter
from memloop.wire.errors import Unprocessable

_NAME_CHARS = 80
_LAST_PAGE = 9_999_999
_LABEL_STEP = 8
"""Room for labels is a multiple of this, so that reads of other files use the same cuts."""
_LEAST_PIECE_TOKENS = 16
_TEXTS_OPEN = 4
_GAP = "\n\n"


async def open_collection(
    storage: Storage, files: Sequence[ReadableFile], splitter: Splitter, *, chunk_tokens: int, keeps_index: bool
) -> "Collection":
    """Open the files' texts, with ``keeps_index`` as of ``chunk_index``.

    Raises Unprocessable when labels leave no room in a chunk, NotFound, Unavailable.
    """
    longest = max(splitter.count(f"{_label(file.filename, _LAST_PAGE)}{_GAP}") for file in files)
    label_tokens = -(-(longest + _LABEL_STEP // 2) // _LABEL_STEP) * _LABEL_STEP
    piece_tokens = chunk_tokens - label_tokens
    if piece_tokens < _LEAST_PIECE_TOKENS:
        raise Unprocessable(
            f"Chunks of {chunk_tokens} tokens have no room for the names of the files, which take {label_tokens}.",
            param="chunk_tokens",
            code="window_exceeded",
        )
    indexes = [
        await chunk_index(storage, file.text, splitter, chunk_tokens=piece_tokens, keeps_index=keeps_index)
        for file in files
    ]
    return Collection(storage, files, indexes, label_tokens, chunk_tokens)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A chunk of one of the files."""

    file: int
    number: int


class Collection:
    """A ``ReadDocument`` of several files. Holds all indexes, and blocks of a few texts."""

    def __init__(
        self,
        storage: Storage,
        files: Sequence[ReadableFile],
        indexes: Sequence[ChunkIndex],
        label_tokens: int,
        chunk_tokens: int,
    ) -> None:
        self._storage = storage
        self._files = files
        self._indexes = indexes
        self._opened: OrderedDict[int, StoredChunks] = OrderedDict()
        counts = [len(index.tokens) for index in indexes]
        self.pieces = [_Piece(file, number) for file, count in enumerate(counts) for number in range(count)]
        self.starts = array("Q", [0])
        """Where each file begins when all are joined with gaps; at last, where they end."""
        for index in indexes:
            chars = index.char_ends[-1] if index.char_ends else 0
            self.starts.append(self.starts[-1] + chars + len(_GAP))
        self.chunks = _Packed(self, label_tokens, chunk_tokens)
        self.plain: Chunks = _Plain(self)

    async def place(self, span: TextSpan) -> Place:
        """See ``ReadDocument``."""
        piece = self.pieces[span.chunk]
        file, start = self._files[piece.file], span.start - self.starts[piece.file]
        page = await page_of(self.opened(piece.file), piece.number, start)
        end = start + span.end - span.start
        return Place(self.chunks.holding(span.chunk), start, end, file.file_id, file.filename, page)

    def opened(self, file: int) -> StoredChunks:
        """Return a file's chunks."""
        if file not in self._opened:
            self._opened[file] = StoredChunks(self._storage, self._files[file].text, self._indexes[file])
        self._opened.move_to_end(file)
        chunks = self._opened[file]
        while len(self._opened) > _TEXTS_OPEN:
            self._opened.popitem(last=False)
        return chunks

    def span(self, piece: _Piece) -> Span:
        """Return where a piece lies in its file."""
        index = self._indexes[piece.file]
        start = index.char_ends[piece.number - 1] if piece.number else 0
        return Span(start, index.char_ends[piece.number], index.tokens[piece.number])

    def is_last(self, piece: _Piece) -> bool:
        """Return whether the file ends with the piece."""
        return piece.number == len(self._indexes[piece.file].tokens) - 1

    def label(self, piece: _Piece) -> str:
        """Return the line above a piece."""
        return _label(self._files[piece.file].filename, self._indexes[piece.file].page_at(piece.number))


class _Packed:
    """The ``Chunks`` that the model reads. Positions count the characters that it reads."""

    def __init__(self, texts: Collection, label_tokens: int, chunk_tokens: int) -> None:
        self._texts = texts
        self._first: list[int] = []
        """The first piece of each chunk."""
        self._tokens: list[int] = []
        for number, piece in enumerate(texts.pieces):
            tokens = texts.span(piece).tokens + label_tokens
            if self._tokens and self._tokens[-1] + tokens <= chunk_tokens:
                self._tokens[-1] += tokens
            else:
                self._first.append(number)
                self._tokens.append(tokens)

    def __len__(self) -> int:
        return len(self._first)

    def span(self, index: int) -> Span:
        """See ``Chunks``."""
        return Span(self._starts[index], self._starts[index + 1], self._tokens[index])

    async def chunk(self, index: int) -> Chunk:
        """See ``Chunks``."""
        parts: list[str] = []
        for piece in self._pieces(index):
            chunk = await self._texts.opened(piece.file).chunk(piece.number)
            parts += (self._texts.label(piece), chunk.text, _GAP)
        span = self.span(index)
        return Chunk(index, span.start, span.end, "".join(parts), span.tokens)

    def holding(self, piece: int) -> int:
        """Return the chunk that holds a piece."""
        return bisect_right(self._first, piece) - 1

    @cached_property
    def _starts(self) -> "array[int]":
        starts = array("Q", [0])
        for index in range(len(self)):
            pieces = [(self._texts.label(piece), self._texts.span(piece)) for piece in self._pieces(index)]
            starts.append(starts[-1] + sum(len(label) + span.end - span.start + len(_GAP) for label, span in pieces))
        return starts

    def _pieces(self, index: int) -> list[_Piece]:
        end = self._first[index + 1] if index + 1 < len(self._first) else len(self._texts.pieces)
        return self._texts.pieces[self._first[index] : end]


class _Plain:
    """The files' texts joined with gaps, in pieces."""

    def __init__(self, texts: Collection) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts.pieces)

    def span(self, index: int) -> Span:
        """See ``Chunks``."""
        piece = self._texts.pieces[index]
        span, base = self._texts.span(piece), self._texts.starts[piece.file]
        gap = len(_GAP) if self._texts.is_last(piece) else 0
        return Span(base + span.start, base + span.end + gap, span.tokens)

    async def chunk(self, index: int) -> Chunk:
        """See ``Chunks``."""
        piece, span = self._texts.pieces[index], self.span(index)
        chunk = await self._texts.opened(piece.file).chunk(piece.number)
        text = chunk.text + (_GAP if self._texts.is_last(piece) else "")
        return Chunk(index, span.start, span.end, text, span.tokens)


def _label(filename: str, page: int | None) -> str:
    name = filename[:_NAME_CHARS]
    return f"[{name}]{_GAP}" if page is None else f"[{name}, page {page}]{_GAP}"
