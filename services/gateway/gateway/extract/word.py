"""Reads DOCX: paragraphs with their automatic numbers, tables row by row, boxes, notes, pages.

The automatic numbers of a DOCX's paragraphs, which stand nowhere in its text: clause 4.2 (b).
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from gateway.extract.package import Element, Package, drawn
from gateway.extract.source import PAGE_END, Source, aside, numeral
from gateway.extract.symbols import FORMULAS, RAISED, in_line, is_raised, sign, with_powers

_LEVELS: Final = 9
_KINDS: Final = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a list: where it starts, its kind of number, and the text around the numbers (``%1.%2``)."""

    start: int
    kind: str
    text: str
    is_legal: bool


@dataclass(slots=True)
class Numbering:
    """The lists of a document, and how far each has counted."""

    lists: dict[str, tuple[str, dict[int, Level]]]
    styles: dict[str, Element]
    _counts: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def of(cls, package: Package, main: str) -> "Numbering":
        """Read the lists and styles of a document."""
        styles, lists = dict[str, Element](), dict[str, tuple[str, dict[int, Level]]]()
        for part in package.parts(main, "styles"):
            styles = {style.get("styleId", ""): style for style in part.iter("style")}
        for part in package.parts(main, "numbering"):
            abstract = {kind.get("abstractNumId", ""): kind for kind in part.iter("abstractNum")}
            for number in part.iter("num"):
                key = _value(number, "abstractNumId")
                levels = _levels(abstract[key]) if key in abstract else {}
                for override in number.iter("lvlOverride"):
                    levels |= _levels(override)
                lists[number.get("numId", "")] = (key, levels)
        return cls(lists, styles)

    def label(self, paragraph: Element) -> str:
        """Return the number in front of a paragraph, with a space, and count on; empty without one."""
        properties = paragraph.find("pPr")
        if properties is None:
            return ""
        number, level = self._list_of(properties)
        key, levels = self.lists.get(number, ("", {}))
        if level not in levels:
            return ""
        counts = self._counts[key]
        counts[level] = counts.get(level, levels[level].start - 1) + 1
        for deeper in [other for other in counts if other > level]:
            del counts[deeper]
        label = levels[level].text
        for shown in range(level + 1):
            if f"%{shown + 1}" in label and shown in levels:
                count = counts.setdefault(shown, levels[shown].start)
                kind = "decimal" if levels[level].is_legal else levels[shown].kind
                label = label.replace(
                    f"%{shown + 1}", f"{count:02}" if kind == "decimalZero" else numeral(count, _KINDS.get(kind, "1"))
                )
        if levels[level].kind == "bullet":
            label = "\u2022"
        return f"{label} " if label and levels[level].kind != "none" else ""

    def _list_of(self, properties: Element) -> tuple[str, int]:
        """Return the list and level of a paragraph, its own or its style's."""
        number, level, style = "", "", _value(properties, "pStyle")
        own: Element | None = properties
        for _ in range(_LEVELS):
            found = None if own is None else own.find("numPr")
            if found is not None:
                number, level = number or _value(found, "numId"), level or _value(found, "ilvl")
            if number or style not in self.styles:
                break
            own, style = self.styles[style].find("pPr"), _value(self.styles[style], "basedOn")
        return number, int(level) if level.isdecimal() else 0


def _levels(holder: Element) -> dict[int, Level]:
    return {
        int(level.get("ilvl", "0")): Level(
            start=int(_value(level, "start") or 1),
            kind=_value(level, "numFmt") or "decimal",
            text=_value(level, "lvlText"),
            is_legal=level.find("isLgl") is not None,
        )
        for level in holder.iter("lvl")
    }


def _value(element: Element, name: str) -> str:
    child = element.find(name)
    return "" if child is None else child.get("val", "")


_LEFT: Final = frozenset(
    (
        *("pPr", "rPr", "tblPr", "tblGrid", "trPr", "tcPr", "sectPr", "sdtPr", "sdtEndPr"),
        *("del", "moveFrom", "delText", "instrText", "Fallback", "rt"),
    )
)
"""Properties, tracked deletions, the second copies of text boxes, and readings above signs."""
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
    yield from (f"[chart: {line}]\n" for line in drawn(package, main) if line)
    seen = set[str]()
    for edge in _EDGES:
        for part in package.parts(main, edge):
            text = " ".join(reading.text(part).replace(_BREAK, " ").split())
            if text and text not in seen:
                seen.add(text)
                yield f"{aside(edge, text)}\n"
    source.note(sum(1 for _ in root.iter("blip")), "picture", "pictures")
    source.note(sum(1 for _ in root.iter("rt")), "reading above a sign", "readings above signs")
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
        return with_powers("".join(self._parts(element))).strip("\n")

    def _parts(self, element: Element) -> Iterator[str]:
        for child in element:
            if child.tag == "t":
                yield child.text or ""
            elif (shown := self._sign(child)) is not None:
                yield shown
            elif child.tag == "p":
                yield f"\n{self.numbering.label(child)}"
                yield from self._parts(child)
            elif child.tag == "AlternateContent":
                yield from self._parts(_choice(child))
            elif child.tag not in _LEFT:
                yield RAISED if child.tag == "r" and is_raised(child) else ""
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
            case "sym":
                return sign(element.get("font", ""), element.get("char", ""))
            case tag:
                return in_line(element, self.text) if tag in FORMULAS else _SIGNS.get(tag)


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
        for note in (note for part in package.parts(main, part_kind) for note in part.iter(kind)):
            text = plain.text(note).replace(_BREAK, "").strip()
            found[kind, note.get("id", "")] = f" {aside(kind, text, note.get('author'))}"
    return found


def _new_pages(page: int, count: int) -> str:
    return "".join(f"{PAGE_END}[page {page + number + 1}]\n\n" for number in range(count))
