"""Reads OpenDocument: texts with their pages, presentations slide by slide, spreadsheets row by row.

Cells are read as they are shown: calamine has no formats, reads ``#DIV/0!`` as 0 and leaves out comments.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Final, TypeAlias
from zipfile import ZipFile

from gateway.extract.number_formats import with_minus
from gateway.extract.number_places import plain
from gateway.extract.package import Element, parsed, words
from gateway.extract.source import PAGE_END, Source, Unreadable, aside, column, numeral, place

_LEFT: Final = frozenset(
    {"tracked-changes", "note-citation", "forms", "variable-decls", "sequence-decls", "creator", "date", "ruby-text"}
    | {"binary-data"}
)
_LINES: Final = frozenset({"p", "h", "table-row"})
_SIGNS: Final = {"tab": "\t", "line-break": "\n"}
_MOST_SPACES: Final = 1000
_DURATION = re.compile(r"PT(\d+)H(\d+)M(\d+)(?:[.,]\d+)?S")
_NUMBERS: Final = frozenset({"float", "currency", "percentage"})
_Numbers: TypeAlias = dict[tuple[str, int], tuple[str, str]]
"""The kinds of automatic numbers and what follows these, by the style and level of a list."""


def flat(source: Source) -> Iterator[str]:
    """Yield the text of a document in one XML file, which is content and styles alike. Raises as ``opendocument``."""
    with ZipFile(BytesIO(), "w") as archive:
        raw = source.whole()
        for name in ("content.xml", "styles.xml"):
            archive.writestr(name, raw)
        yield from opendocument(source, archive)


def opendocument(source: Source, archive: ZipFile) -> Iterator[str]:
    """Yield the text. Raises Unreadable for an encrypted file, and for one without content."""
    if "META-INF/manifest.xml" in archive.NameToInfo:
        manifest = parsed(archive, "META-INF/manifest.xml")
        if next(manifest.iter("encryption-data"), None) is not None:
            raise Unreadable("the file is encrypted")
    root = parsed(archive, "content.xml")
    body = root.find("body")
    kind = body[0].tag if body is not None and len(body) else ""
    if body is None:
        raise Unreadable("the file is damaged (OpenDocument)")
    if kind == "spreadsheet":
        own = (table for table in body[0].findall("table") if table.find("table-source") is None)
        for number, table in enumerate(own, start=1):
            yield place("sheet", number, "\n".join(_rows(table)), title=table.get("name", ""))
        return
    _put_formulas(body, archive)
    source.note(sum(1 for _ in body.iter("image")), "picture", "pictures")
    numbers: _Numbers = {
        (style.get("name", ""), int(level.get("level", "1"))): (
            level.get("num-format", ""),
            level.get("num-suffix", ""),
        )
        for style in root.iter("list-style")
        for level in style.iter("list-level-style-number")
    }
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
    styles = parsed(archive, "styles.xml") if "styles.xml" in archive.NameToInfo else body
    edges = (
        f"{aside(kind, said)}\n"
        for kind in ("header", "footer")
        for edge in styles.iter()
        if edge.tag in (kind, f"{kind}-first", f"{kind}-left") and (said := _in_one(edge))
    )
    yield from dict.fromkeys(edges)
    source.note(sum(1 for _ in body.iter("ruby-text")), "reading above a sign", "readings above signs")


def _in_one(element: Element) -> str:
    """Return the paragraphs inside an element as one line."""
    return " ".join(" ".join("".join(_words(line)) for line in element.iter("p")).split())


def _put_formulas(body: Element, archive: ZipFile) -> None:
    """Put formulas, which are documents in the document, at their places: as they were typed, or else their signs."""
    for link in body.iter("object"):
        name = link.get("href", "").removeprefix("./") + "/content.xml"
        root = parsed(archive, name) if name in archive.NameToInfo else next(link.iter("math"), link)
        if root.tag == "math":
            link[:], link.text = [], f" {words(next(root.iter('annotation'), root))} "


def _rows(table: Element) -> Iterator[str]:
    """Yield the rows of a sheet that have a value, a line each, then its comments and boxes."""
    rows, beside, number = list[tuple[list[str], int]](), list[str](), 0
    for row in table.iter("table-row"):
        cells, gap = list[str](), 0
        for cell in row:
            times = int(cell.get("number-columns-repeated", "1"))
            for note in cell.findall("annotation"):
                at = f"{column(len(cells) + gap)}{number + 1}"
                beside.append(aside(f"comment on {at}", _in_one(note), note.findtext("creator")))
            if shown := _value(cell):
                cells += [""] * gap + [shown] * times
                gap = 0
            else:
                gap += times
        times = int(row.get("number-rows-repeated", "1"))
        number += times
        rows += [(cells, times)] if cells else []
    first = min((next(at for at, cell in enumerate(cells) if cell) for cells, _ in rows), default=0)
    for cells, times in rows:
        yield from [" | ".join(cells[first:])] * times
    yield from beside
    yield from filter(None, (words(box) for kind in ("text-box", "custom-shape") for box in table.iter(kind)))


def _value(cell: Element) -> str:
    """Return a cell as it is shown, but for days without their century, and negative numbers without a minus."""
    shown = " ".join(" ".join("".join(_words(line)) for line in cell.findall("p")).split())
    kind = cell.get("value-type", "")
    value = cell.get("value" if kind in _NUMBERS else f"{kind}-value", "")
    if shown and kind == "date" and value[: len("1865")] not in shown:
        return value.replace("T", " ").removesuffix(" 00:00:00")
    if shown or not value:
        return with_minus(shown) if value.startswith("-") and kind in _NUMBERS else shown
    duration = _DURATION.fullmatch(value) if kind == "time" else None
    return plain(float(value)) if kind in _NUMBERS else ":".join(duration.groups()) if duration else value


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
            kind, suffix = numbers.get((style, level), ("", ""))
            yield (f"{numeral(count, kind)}{suffix} " if kind else "") + next(lines, "")
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
            yield f" {aside(child.get('note-class', 'comment'), _in_one(child), child.findtext('creator'))}"
        elif child.tag not in _LEFT:
            yield from ("\n" if child.tag in _LINES else "", *_words(child))
        yield child.tail or ""
