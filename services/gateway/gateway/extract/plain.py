"""Reads formats that are text: prose, Markdown, code, tables of commas, subtitles, JSON."""

import codecs
import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Final

from gateway.extract.encoding import decoded, label_in
from gateway.extract.source import Source

_BLOCK_BYTES: Final = 1 << 20
_ESCAPES = re.compile(r"(?<!\\)(?:\\\\)*((?:\\u[0-9a-fA-F]{4})+)")
_FOLDED = re.compile(r"\r?\n[ \t]")
"""Where an appointment or a card breaks a long line, also inside a word (RFC 5545, 6350)."""
_CHARSET = re.compile(r"charset=[\"']?([A-Za-z0-9_:.-]{1,40})")


def plain(source: Source) -> Iterator[str]:
    """Yield the text as it is; in JSON, letters that are written as numbers become letters."""
    said = label_in(source.head) if source.name.endswith((".xml", ".svg", ".fb2")) else ""
    blocks = chain([source.head], iter(partial(source.rest.read, _BLOCK_BYTES), b"")) if source.head else ()
    parts = decoded(source, blocks, declared=charset_of(source.media_type) or said)
    if source.head.removeprefix(codecs.BOM_UTF8)[:7].upper() == b"BEGIN:V":
        yield _FOLDED.sub("", "".join(parts))
        return
    if not source.name.endswith((".json", ".jsonl", ".ndjson", ".ipynb")):
        yield from parts
        return
    line_end = ""
    for part in parts:
        text = line_end + part
        end = text.rfind("\n") + 1
        lines, line_end = text[:end], text[end:]
        yield _ESCAPES.sub(_letters, lines)
    yield _ESCAPES.sub(_letters, line_end)


def charset_of(media_type: str) -> str:
    """Return the charset that a media type names."""
    found = _CHARSET.search(media_type)
    return found[1] if found else ""


def _letters(found: "re.Match[str]") -> str:
    escaped = found[1]
    letters: str = json.loads(f'"{escaped}"')
    kept = all(letter.isprintable() and letter not in '"\\' for letter in letters)
    return found[0].removesuffix(escaped) + (letters if kept else escaped)
