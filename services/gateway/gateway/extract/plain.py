"""Reads formats that are text: prose, Markdown, code, tables of commas, subtitles, JSON, notebooks of Jupyter."""

import codecs
import json
import re
from binascii import a2b_qp
from collections.abc import Iterator
from functools import partial
from html import unescape
from itertools import chain
from typing import Any, Final

from gateway.extract.encoding import decoded, label_in
from gateway.extract.source import Source

_BLOCK_BYTES: Final = 1 << 20
_ESCAPES = re.compile(r"(?<!\\)(?:\\\\)*((?:\\u[0-9a-fA-F]{4})+)")
_FOLDED = re.compile(r"\r?\n[ \t]")
"""Where an appointment or a card breaks a long line, also inside a word (RFC 5545, 6350)."""
_QUOTED = re.compile(r"(?im)^([^:\n]*;ENCODING=QUOTED-PRINTABLE[^:\n]*:)((?:[^\n]*=\r?\n)*[^\n]*)")
"""How older cards have letters beyond ASCII (vCard 2.1)."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""Colours and moves of a terminal (ECMA-48)."""
_XML: Final = (".xml", ".svg", ".fb2", ".rss", ".atom")
_CHARSET = re.compile(r"charset=[\"']?([A-Za-z0-9_:.-]{1,40})")


def plain(source: Source) -> Iterator[str]:
    """Yield the text without a terminal's colours; letters that JSON and XML write as codes become letters."""
    is_xml = source.name.endswith(_XML) or source.head.removeprefix(codecs.BOM_UTF8).startswith(b"<?xml")
    said = label_in(source.head) if is_xml else ""
    blocks = chain([source.head], iter(partial(source.rest.read, _BLOCK_BYTES), b"")) if source.head else ()
    parts = decoded(source, blocks, declared=charset_of(source.media_type) or said)
    if source.head.removeprefix(codecs.BOM_UTF8)[:7].upper() == b"BEGIN:V":
        said = _QUOTED.sub(lambda found: found[1] + a2b_qp(found[2].encode()).decode(errors="replace"), "".join(parts))
        yield _FOLDED.sub("", said)
        return
    if not source.name.endswith((".json", ".jsonl", ".ndjson", ".ipynb")):
        for part in parts:
            shown = _COLOURS.sub("", part) if "\x1b[" in part else part
            yield unescape(shown) if is_xml else shown
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


def notebook(source: Source) -> Iterator[str]:
    """Yield text, code and printed results of the cells (nbformat 4); another JSON file of such a name as it is."""
    raw = source.whole()
    try:
        cells: list[dict[str, Any]] = json.loads("".join(decoded(source, [raw])))["cells"]
        parts: list[str] = []
        for cell in cells:
            parts.append("".join(cell["source"]))
            for output in cell.get("outputs", ()):
                shown: dict[str, Any] = output.get("data", {})
                pictures = sum(kind.startswith("image/") for kind in shown)
                source.note(pictures, "picture", "pictures")
                parts.append("".join(output.get("text", "" if pictures else shown.get("text/plain", ""))))
                parts.append(": ".join(filter(None, (output.get("ename"), output.get("evalue")))))
    except (ValueError, KeyError, TypeError, AttributeError):
        yield from plain(source.again(raw))
        return
    yield "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"
