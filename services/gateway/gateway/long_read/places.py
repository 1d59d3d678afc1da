"""A read's document: its chunks as the model reads them, and the file and page of each place in it."""

from dataclasses import dataclass
from typing import Protocol

from gateway.files import PAGE_END, ReadableFile, StoredChunks
from memloop.evidence.findings import TextSpan
from memloop.ports import Chunks, HeldChunks


@dataclass(frozen=True, slots=True)
class Place:
    """Where a span stands: the chunk of the read, and characters of the document or of the named file's text."""

    chunk: int
    start: int
    end: int
    file_id: str | None = None
    filename: str | None = None
    page: int | None = None


class ReadDocument(Protocol):
    """A document of one or several files."""

    @property
    def chunks(self) -> Chunks:
        """The chunks that the model reads."""
        ...

    @property
    def plain(self) -> Chunks:
        """The document without labels, in which evidence is searched."""
        ...

    async def place(self, span: TextSpan) -> Place:
        """Return the place of a span of ``plain``. Raises the errors of loading a chunk."""
        ...


@dataclass(frozen=True, slots=True)
class InBody:
    """A document that came in the request."""

    chunks: HeldChunks

    @property
    def plain(self) -> Chunks:
        """See ``ReadDocument``."""
        return self.chunks

    async def place(self, span: TextSpan) -> Place:
        """See ``ReadDocument``."""
        page = None
        if any(PAGE_END in chunk.text for chunk in self.chunks):
            before, chunk = (
                sum(chunk.text.count(PAGE_END) for chunk in self.chunks[: span.chunk]),
                self.chunks[span.chunk],
            )
            page = 1 + before + pages_before(chunk.text, span.start - chunk.start)
        return Place(span.chunk, span.start, span.end, page=page)


@dataclass(frozen=True, slots=True)
class InStorage:
    """A stored document: one file, or a long text of a request."""

    chunks: StoredChunks
    file: ReadableFile | None

    @property
    def plain(self) -> Chunks:
        """See ``ReadDocument``."""
        return self.chunks

    async def place(self, span: TextSpan) -> Place:
        """See ``ReadDocument``."""
        page = await page_of(self.chunks, span.chunk, span.start)
        named = (None, None) if self.file is None else (self.file.file_id, self.file.filename)
        return Place(span.chunk, span.start, span.end, *named, page)


async def page_of(chunks: StoredChunks, number: int, start: int) -> int | None:
    """Return the page of a character in chunk ``number``; None in a text without pages."""
    first = chunks.index.page_at(number)
    if first is None:
        return None
    chunk = await chunks.chunk(number)
    return first + pages_before(chunk.text, start - chunk.start)


def pages_before(text: str, end: int) -> int:
    """Count the pages that end before a character."""
    return text.count(PAGE_END, 0, max(0, end))
