"""Reads DOCX: paragraphs with their automatic numbers, tables row by row, boxes, notes, pages."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gateway.extract.markup import Element
from gateway.extract.numbering import Numbering
from gateway.extract.package import Package
from gateway.extract.source import PAGE_END, Source

_LEFT: Final = frozenset(
    (
        *("pPr", "rPr", "tblPr", "tblGrid", "trPr", "tcPr", "sectPr", "sdtPr", "sdtEndPr"),
        *("del", "moveFrom", "delText", "instrText", "Fallback"),
    )
)
"""Properties, tracked deletions, and the second copies of text boxes."""
_SIGNS: Final = {"tab": "\t", "ptab": "\t", "noBreakHyphen": "-", "cr": "\n"}
_NOTES: Final = {"footnotes": "footnote", "endnotes": "endnote", "comments": "comment"}
_EDGES: Final = ("header", "footer")
_BOXES: Final = ("\u2610", "\u2612")
_BREAK: Final = "\0"
"""Stands for a page break until its paragraph is whole."""


def word(source: Source, package: Package, main: str, root: Element) -> Iterator[str]:
    """Yield the blocks of the document, and at last its headers and footers."""
    rendered = next(root.iter("lastRenderedPageBreak"), None) is not None
    reading = _Reading(_notes(package, main), Numbering.of(package, main), rendered)
    page = 1
    for block in _blocks(root):
        before, text, after = reading.row_or_paragraph(block)
        yield _new_pages(page, before) + text + _new_pages(page + before, after)
        page += before + after
    seen = set[str]()
    for edge in _EDGES:
        for part in map(package.part, package.linked(main, edge)):
            text = "" if part is None else " ".join(reading.text(part).replace(_BREAK, " ").split())
            if text and text not in seen:
                seen.add(text)
                yield f"[{edge}: {text}]\n"
    source.note(sum(1 for _ in root.iter("blip")), "picture", "pictures")
    source.note(sum(1 for _ in root.iter("OLEObject")), "embedded object", "embedded objects")
    source.note(sum(1 for _ in root.iter("altChunk")), "embedded document", "embedded documents")


def _blocks(element: Element) -> Iterator[Element]:
    """Yield the paragraphs and table rows that are not inside others."""
    for child in element:
        if child.tag in ("p", "tr"):
            yield child
        elif child.tag == "AlternateContent":
            yield from _blocks(_choice(child))
        elif child.tag not in _LEFT:
            yield from _blocks(child)


def _choice(alternatives: Element) -> Element:
    """Return the first of several forms of the same content."""
    return next((form for kind in ("Choice", "Fallback") for form in alternatives.iter(kind)), alternatives)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the text of a block depends on: notes by kind and id, lists, and which breaks are pages."""

    notes: dict[tuple[str, str], str]
    numbering: Numbering
    rendered: bool

    def row_or_paragraph(self, block: Element) -> tuple[int, str, int]:
        """Return a block's text as lines, with the page breaks before it, and those inside and behind it."""
        if block.tag == "tr":
            cells = [" ".join(self.text(cell).split("\n")) for cell in _cells(block)]
            text = " | ".join(cells)
            return 0, text.replace(_BREAK, "") + "\n", text.count(_BREAK)
        text = self.text(block)
        before = len(text) - len(text.lstrip(_BREAK))
        label = self.numbering.label(block)
        return before, f"{label}{text.replace(_BREAK, '')}\n", text.count(_BREAK) - before

    def text(self, element: Element) -> str:
        """Return the text inside an element, with the boxes and nested tables in it, and notes at their places."""
        return "".join(self._parts(element)).strip("\n")

    def _parts(self, element: Element) -> Iterator[str]:
        for child in element:
            if child.tag == "t":
                yield child.text or ""
            elif (sign := self._sign(child)) is not None:
                yield sign
            elif child.tag == "p":
                yield f"\n{self.numbering.label(child)}"
                yield from self._parts(child)
            elif child.tag == "AlternateContent":
                yield from self._parts(_choice(child))
            elif child.tag not in _LEFT:
                yield from self._parts(child)

    def _sign(self, element: Element) -> str | None:
        """Return what an element without text stands for: a break, a ticked box, a note; None for another element."""
        match element.tag:
            case "br":
                kind = element.get("type", "textWrapping")
                return {"textWrapping": "\n", "page": "" if self.rendered else _BREAK}.get(kind, "")
            case "lastRenderedPageBreak":
                return _BREAK
            case "checkBox":
                state = next((found for kind in ("checked", "default") for found in element.iter(kind)), None)
                return _BOXES[state is not None and state.get("val", "1") in ("1", "true", "on")]
            case "footnoteReference" | "endnoteReference" | "commentReference":
                return self.notes.get((element.tag.removesuffix("Reference"), element.get("id", "")), "")
            case tag:
                return _SIGNS.get(tag)


def _cells(row: Element) -> Iterator[Element]:
    """Yield the cells of a row, which may lie in content controls."""
    for child in row:
        if child.tag == "tc":
            yield child
        elif child.tag not in _LEFT:
            yield from _cells(child)


def _notes(package: Package, main: str) -> dict[tuple[str, str], str]:
    """Return footnotes, endnotes and comments by kind and id."""
    found, plain = dict[tuple[str, str], str](), _Reading({}, Numbering({}, {}), rendered=True)
    for part_kind, kind in _NOTES.items():
        for name in package.linked(main, part_kind):
            part = package.part(name)
            for note in part.iter(kind) if part is not None else ():
                title = f"{kind} by {author}" if (author := note.get("author")) else kind
                text = plain.text(note).replace(_BREAK, "").strip()
                found[kind, note.get("id", "")] = f" [{title}: {text}]"
    return found


def _new_pages(page: int, count: int) -> str:
    return "".join(f"{PAGE_END}[page {page + number + 1}]\n\n" for number in range(count))
