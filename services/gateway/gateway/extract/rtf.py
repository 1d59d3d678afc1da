"""Reads RTF by striprtf."""

from collections.abc import Iterator

from striprtf.striprtf import rtf_to_text

from gateway.extract.source import Source


def rtf(source: Source) -> Iterator[str]:
    """Yield the text; a row of a table is one line."""
    raw = source.whole()
    source.note(raw.count(b"\\pict"), "picture", "pictures")
    yield rtf_to_text(raw.decode("latin-1"), errors="replace")
