"""Reads OpenDocument: texts with their pages, and presentations slide by slide; calamine reads the sheets."""

from collections.abc import Iterator
from typing import Final
from zipfile import ZipFile

from gateway.extract.numerals import numeral
from gateway.extract.package import Element, parsed
from gateway.extract.sheets import sheets
from gateway.extract.source import PAGE_END, Source, Unreadable, place

_LEFT: Final = frozenset(
    {"tracked-changes", "note-citation", "forms", "variable-decls", "sequence-decls", "creator", "date"}
)
_LINES: Final = frozenset({"p", "h", "table-row"})
_SIGNS: Final = {"tab": "\t", "line-break": "\n"}
_MOST_SPACES: Final = 1000


def opendocument(source: Source, archive: ZipFile, raw: bytes) -> Iterator[str]:
    """Yield the text. Raises Unreadable for an encrypted file."""
    if "META-INF/manifest.xml" in archive.NameToInfo:
        manifest = parsed(archive, "META-INF/manifest.xml")
        if next(manifest.iter("encryption-data"), None) is not None:
            raise Unreadable("the file is encrypted")
    root = parsed(archive, "content.xml")
    body = root.find("body")
    kind = body[0].tag if body is not None and len(body) else ""
    if body is None or kind == "spreadsheet":
        yield from sheets(source, raw)
        return
    source.note(sum(1 for _ in body.iter("image")), "picture", "pictures")
    numbers = _Numbers(root)
    if kind == "presentation":
        for number, page in enumerate(body.iter("page"), start=1):
            yield place("slide", number, "".join(_lines(page, numbers)), title=page.get("name", ""))
        return
    page = 1
    for line in _lines(body, numbers):
        first, *others = line.split(PAGE_END)
        yield first
        for part in others:
            page += 1
            yield f"{PAGE_END}[page {page}]\n\n{part}"


class _Numbers:
    """The automatic numbers of lists, by the names of their styles."""

    def __init__(self, root: Element) -> None:
        self._formats = {
            style.get("name", ""): {
                int(level.get("level", "1")): (level.get("num-format", ""), level.get("num-suffix", ""))
                for level in style.iter("list-level-style-number")
            }
            for style in root.iter("list-style")
        }

    def label(self, style: str, level: int, number: int) -> str:
        """Return the number before an item, with a space; empty for a list without numbers."""
        kind, suffix = self._formats.get(style, {}).get(level, ("", ""))
        return f"{numeral(number, kind)}{suffix} " if kind else ""


def _lines(element: Element, numbers: _Numbers, *, style: str = "", level: int = 0) -> Iterator[str]:
    """Yield the paragraphs and table rows inside an element, a line each."""
    count = 0
    for child in element:
        if child.tag == "table-row":
            cells = [cell for cell in child if cell.tag == "table-cell"]
            yield " | ".join(" ".join("".join(_lines(cell, numbers)).split("\n")).strip() for cell in cells) + "\n"
        elif child.tag in ("p", "h"):
            yield "".join(_words(child)) + "\n"
        elif child.tag == "soft-page-break":
            yield PAGE_END
        elif child.tag == "list":
            yield from _lines(child, numbers, style=child.get("style-name", style), level=level + 1)
        elif child.tag == "list-item":
            count += 1
            lines = _lines(child, numbers, style=style, level=level)
            yield numbers.label(style, level, count) + next(lines, "")
            yield from lines
        elif child.tag not in _LEFT:
            yield from _lines(child, numbers, style=style, level=level)


def _words(element: Element) -> Iterator[str]:
    """Yield the text of a paragraph, with notes at their places."""
    yield element.text or ""
    for child in element:
        if child.tag == "s":
            yield " " * min(int(child.get("c", "1")), _MOST_SPACES)
        elif child.tag in _SIGNS:
            yield _SIGNS[child.tag]
        elif child.tag == "soft-page-break":
            yield PAGE_END
        elif child.tag in ("note", "annotation"):
            kind = child.get("note-class", "comment")
            author = child.findtext("creator") or ""
            said = " ".join(" ".join("".join(_words(p)) for p in child.iter("p")).split())
            yield f" [{kind} by {author}: {said}]" if author else f" [{kind}: {said}]"
        elif child.tag not in _LEFT:
            yield from ("\n" if child.tag in _LINES else "", *_words(child))
        yield child.tail or ""
