"""Reads spreadsheets (XLSX, XLS, XLSB) by calamine: each row with a value is one line.

What calamine leaves out of XLSX is read from its parts: comments and boxes, which stand behind the rows of their sheet,
and the formats of numbers, errors and formulas without a value. A parser of XML takes five times as long as calamine,
so these cells are found by a pattern, a block of rows at a time.
"""

import datetime as dt
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from html import unescape
from io import BytesIO
from types import MappingProxyType
from typing import Final, TypeAlias
from xml.etree.ElementTree import ParseError

from python_calamine import CalamineWorkbook, PasswordError

from gateway.extract.number_formats import BUILT_IN, shower
from gateway.extract.number_places import Show, plain
from gateway.extract.package import Element, Package, words
from gateway.extract.source import Source, Unreadable, aside, place

Row: TypeAlias = tuple[int, Mapping[int, str]]
"""The number of a row from 0, and the texts of some of its cells by column from 0."""

_BLOCK_BYTES: Final = 1 << 20
_PLACE: Final = rb"""(?:\s+(?:r="([A-Z]{1,3})(\d{1,7})"|s="(\d{1,5})"|t="(\w+)"|[\w:.-]+="[^"]*"))*+\s*>\s*"""
_FORMULA: Final = rb"<(?:\w+:)?f\b(?:[^>/]|/(?!>))*+(?:/>|>([^<]*)</(?:\w+:)?f>)\s*"
_SHOWN = re.compile(
    rb'<(?:\w+:)?c\b(?=[^>]*\s(?:t="e"|s="[1-9]))(?![^>]*\st="[sbi])' + _PLACE
    + rb"(?:" + _FORMULA + rb")?<(?:\w+:)?v\b[^>/]*>([^<]+)"
)  # fmt: skip
"""A number with a style, or an error: column, row, style, type, formula, value. Cells without a place are left."""
_UNCALCULATED = re.compile(
    rb"<(?:\w+:)?c\b" + _PLACE + _FORMULA + rb"(?:<(?:\w+:)?v\s*(?:/>|>\s*</(?:\w+:)?v>)\s*)?</(?:\w+:)?c>"
)
"""A formula without a value: column, row, style, type, formula."""
_TEXTS: Final = (b"str", b"s")
_ON: Final = ("1", "true", "on")
_NOTHING: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})
_ALL_AS_READ: Final[Mapping[str, Iterator[Row]]] = MappingProxyType({})
_END: Final[Row] = (sys.maxsize, {})


def sheets(
    source: Source,
    raw: bytes,
    beside: Mapping[str, Sequence[str]] = _NOTHING,
    shown: Mapping[str, Iterator[Row]] = _ALL_AS_READ,
) -> Iterator[str]:
    """Yield the sheets; ``beside`` holds lines behind the rows, by the sheet's name.

    ``shown``, by the sheet's name too, has the cells whose text is not calamine's. Raises Unreadable for an encrypted
    file.
    """
    try:
        workbook = CalamineWorkbook.from_filelike(BytesIO(raw))
    except PasswordError:
        raise Unreadable("the file is encrypted") from None
    for number, name in enumerate(workbook.sheet_names, start=1):
        try:
            rows = workbook.get_sheet_by_name(name).iter_rows()
        except Exception:  # noqa: BLE001 - a sheet of charts or a damaged one, which must not hide the others
            source.notes.append(f"sheet {number} has no cells that can be read")
            yield place("sheet", number, "")
            continue
        lines = (" | ".join(row).rstrip(" |") for row in _filled(rows, shown.get(name, iter(()))))
        written = [*(line for line in lines if line), *beside.get(name, ())]
        yield place("sheet", number, "\n".join(written), title=name)


def _filled(rows: Iterator[Sequence[object]], shown: Iterator[Row]) -> Iterator[list[str]]:
    """Yield the cells of each row as they are shown: ``shown`` has those whose text is not calamine's."""
    at, cells = next(shown, _END)
    for number, row in enumerate(rows):
        while at < number:  # rows that are not in their order
            at, cells = next(shown, _END)
        if at == number:
            own = [cells[column] if column in cells else _shown(cell) for column, cell in enumerate(row)]
            yield own + [cells.get(column, "") for column in range(len(row), max(cells) + 1)]
            at, cells = next(shown, _END)
        else:
            yield list(map(_shown, row))
    while cells:
        yield [cells.get(column, "") for column in range(max(cells) + 1)]
        at, cells = next(shown, _END)


def comments_and_boxes(package: Package, main: str, workbook: Element) -> dict[str, list[str]]:
    """Return a line for each comment and each box of text, by the name of its sheet."""
    links, found = package.relations(main), dict[str, list[str]]()
    for sheet in workbook.iter("sheet"):
        link = links.get(sheet.get("r:id", ""))
        if link is not None:
            with suppress(ParseError):  # they are not worth the cells
                drawings = package.parts(link.target, "drawing")
                boxes = (words(box) for drawing in drawings for box in drawing.iter("txBody"))
                found[sheet.get("name", "")] = [*_comments(package, link.target), *filter(None, boxes)]
    return found


def _comments(package: Package, sheet: str) -> Iterator[str]:
    for part in package.parts(sheet, "comments"):
        authors = dict(enumerate(words(author) for author in part.iter("author")))
        for comment in part.iter("comment"):
            number = comment.get("authorId", "")
            author = authors.get(int(number), "") if number.isdecimal() else ""
            if text := " ".join("".join(run.text or "" for run in comment.iter("t")).split()):
                by = "" if author.startswith("tc=") else author  # the id of a thread
                yield aside(f"comment on {comment.get('ref', '')}", text, by)


def _shown(cell: object) -> str:
    match cell:
        case bool():
            return str(cell).upper()
        case float():
            return plain(cell)
        case dt.datetime():
            return cell.isoformat(sep=" ").removesuffix(" 00:00:00")
        case dt.timedelta():
            minutes, seconds = divmod(round(cell.total_seconds()), 60)
            return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
        case _:
            return " ".join(str(cell).split())


def shown_cells(source: Source, package: Package, main: str, workbook: Element) -> dict[str, Iterator[Row]]:
    """Return the rows of each sheet by its name, with the cells whose text is not calamine's."""
    links = package.relations(main)
    is_1904 = any(properties.get("date1904") in _ON for properties in workbook.iter("workbookPr"))
    shows = _styles(package, main, is_1904=is_1904)
    named = ((sheet.get("name", ""), links.get(sheet.get("r:id", ""))) for sheet in workbook.iter("sheet"))
    return {name: _rows(source, package, link.target, shows) for name, link in named if link is not None}


def _styles(package: Package, main: str, *, is_1904: bool) -> Sequence[Show | None]:
    """Return what shows the numbers of each style."""
    part = next(package.parts(main, "styles"), None)
    formats = None if part is None else part.find("cellXfs")
    if part is None or formats is None:
        return []
    own = {number.get("numFmtId", ""): number.get("formatCode", "") for number in part.iterfind("numFmts/numFmt")}
    codes = {str(number): code for number, code in BUILT_IN.items()} | own
    ids = [style.get("numFmtId", "0") for style in formats]
    return [shower(codes[id_], is_1904=is_1904) if id_ in codes else None for id_ in ids]


def _rows(source: Source, package: Package, sheet: str, shows: Sequence[Show | None]) -> Iterator[Row]:
    if sheet not in package.archive.NameToInfo:
        return
    styles = {str(number).encode(): show for number, show in enumerate(shows) if show is not None}
    uncalculated = 0
    for block in _blocks(package, sheet):
        rows = defaultdict[int, dict[int, str]](dict)
        for letters, row, style, kind, _, value in map(re.Match[bytes].groups, _SHOWN.finditer(block)):
            if letters is None:
                continue
            show = styles.get(style)
            try:
                text = value.decode() if kind == b"e" else show(float(value)) if show is not None else ""
            except (ValueError, OverflowError):
                continue  # no number, and calamine's then
            if text:
                rows[int(row) - 1][_column(letters)] = text
        formulas = _UNCALCULATED.finditer(block) if b"<f" in block or b":f" in block else ()
        for letters, row, _, kind, formula in map(re.Match[bytes].groups, formulas):
            if letters is not None and kind not in _TEXTS:
                uncalculated += 1
                if formula:
                    rows[int(row) - 1][_column(letters)] = f"={unescape(formula.decode(errors='replace'))}"
        yield from sorted(rows.items())
    source.note(uncalculated, "formula without a value", "formulas without a value")


def _blocks(package: Package, sheet: str) -> Iterator[bytes]:
    """Yield the part in blocks of whole rows."""
    with package.archive.open(sheet) as part:
        rest = b""
        while block := part.read(_BLOCK_BYTES):
            block = rest + block
            end = block.rfind(b"row>") + 1
            yield block[:end]
            rest = block[end:]
        yield rest


@cache
def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("@")
    return number - 1
