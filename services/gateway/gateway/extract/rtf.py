"""Reads RTF by striprtf, with the notes, edges, boxes and numbers of lists that it leaves out."""

import re
from collections.abc import Iterator
from typing import Final

from striprtf.striprtf import rtf_to_text

from gateway.extract.source import Source

_NO_LENGTH = re.compile(r"\\bin(?![0-9a-z])")
"""A picture whose bytes are digits, though its writer says otherwise; striprtf asks for their number."""
_LEFT_OUT = re.compile(
    r"\\[\\{}]|[{}]|(?:\\\* ?)?\\(?:(footnote|annotation|header|footer)[lrf]?|shptxt|shpinst|shp|pntext)(?![a-z]) ?"
)
"""Signs that are no braces, braces, and the words that begin what striprtf leaves out."""
_LABELS: Final = {"annotation": "comment"}
_LABEL = re.compile(r"\[(footnote|comment|header|footer):\s+")
_EDGE = re.compile(r"\[(?:header|footer): ([^\]]*)\]\n| ?\[(?:footnote|comment): \]")


def rtf(source: Source) -> Iterator[str]:
    """Yield the text; a row of a table is one line, and a note stands where it is referred to."""
    raw = source.whole()
    source.note(raw.count(b"\\pict"), "picture", "pictures")
    told = _NO_LENGTH.sub("", raw.decode("latin-1"))
    text, seen = rtf_to_text("".join(_told(told)), errors="replace"), set[str]()

    def once(edge: "re.Match[str]") -> str:
        """Return the header or footer of the first section that has it; nothing for an empty one or note."""
        line = " ".join(edge[0].split()).replace(" ]", "]")
        is_new = line not in seen and bool(edge[1] and edge[1].strip())
        seen.add(line)
        return f"{line}\n" if is_new else ""

    yield _EDGE.sub(once, _LABEL.sub(r"[\1: ", text))


def _told(raw: str) -> Iterator[str]:
    """Yield the file without the words that hide a text, and with brackets around notes and edges of pages."""
    depth, open_at, done = 0, list[tuple[int, str]](), 0
    for found in _LEFT_OUT.finditer(raw):
        yield raw[done : found.start()]
        done, kept = found.end(), found[0]
        if kept == "{":
            depth += 1
        elif kept == "}":
            depth -= 1
            if open_at and open_at[-1][0] > depth:
                kept = f"]{open_at.pop()[1]}}}"
        elif found[1]:
            is_edge = found[1] in ("header", "footer")
            open_at.append((depth, "\\par " if is_edge else ""))
            kept = f"{'' if is_edge else ' '}[{_LABELS.get(found[1], found[1])}: "
        elif len(kept) > len("\\{"):
            kept = "\\par " if "shptxt" in kept else ""
        yield kept
    yield raw[done:]
