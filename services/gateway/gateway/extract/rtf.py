"""Reads RTF by striprtf."""

import re
from collections.abc import Iterator

from striprtf.striprtf import rtf_to_text

from gateway.extract.source import Source

_NO_LENGTH = re.compile(r"\\bin(?![0-9a-z])")
"""A picture whose bytes are digits, though its writer says otherwise; striprtf asks for their number."""


def rtf(source: Source) -> Iterator[str]:
    """Yield the text; a row of a table is one line."""
    raw = source.whole()
    source.note(raw.count(b"\\pict"), "picture", "pictures")
    yield rtf_to_text(_NO_LENGTH.sub("", raw.decode("latin-1")), errors="replace")
