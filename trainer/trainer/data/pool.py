"""The pool of distractor paragraphs: each title once, on disk, however large the file."""

import hashlib
import os
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Protocol, Self

from trainer.data.hotpot import Paragraph, questions

_MARK = "\0"


class Pool(Protocol):
    """Paragraphs by number, with unique titles. A list of them is a pool."""

    def __len__(self) -> int:
        """Return the number of paragraphs."""
        ...

    def __getitem__(self, number: int, /) -> Paragraph:
        """Return the paragraph of a number, from 0."""
        ...


class DiskPool:
    """A pool in a temporary file; it needs about 100 bytes of memory per paragraph while it fills, then 8."""

    def __init__(self, paragraphs: Iterable[Paragraph]) -> None:
        """Keep the first paragraph of each title. Raises the errors of ``paragraphs``, and OSError."""
        self._file = TemporaryFile(buffering=1 << 20)  # noqa: SIM115 - closed by ``close``
        self._ends = array("Q", [0])
        try:
            self._fill(paragraphs)
        except BaseException:
            self._file.close()
            raise

    @classmethod
    def of(cls, paths: Iterable[Path]) -> Self:
        """Collect all paragraphs of HotpotQA files. Raises DataError."""
        return cls(_paragraphs(paths))

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, number: int) -> Paragraph:
        start, end = self._ends[number], self._ends[number + 1]
        title, _, text = os.pread(self._file.fileno(), end - start, start).decode("utf-8").partition(_MARK)
        return Paragraph(title, text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _fill(self, paragraphs: Iterable[Paragraph]) -> None:
        seen = set[bytes]()
        for paragraph in paragraphs:
            digest = hashlib.blake2b(paragraph.title.encode("utf-8", "replace"), digest_size=16).digest()
            if digest not in seen:
                seen.add(digest)
                line = f"{paragraph.title.replace(_MARK, '')}{_MARK}{paragraph.text}".encode("utf-8", "replace")
                self._ends.append(self._ends[-1] + self._file.write(line))
        self._file.flush()


def _paragraphs(paths: Iterable[Path]) -> Iterator[Paragraph]:
    for path in paths:
        for question in questions(path):
            yield from question.paragraphs.values()
