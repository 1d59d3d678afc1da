"""Reads what calamine leaves out of the cells of XLSX: the formats of their numbers, errors, formulas without a value.

A parser of XML takes five times as long as calamine, so the cells are found by a pattern, a block of rows at a time.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import unescape
from typing import Final, TypeAlias

from gateway.extract.number_formats import BUILT_IN, shower
from gateway.extract.number_places import Show
from gateway.extract.package import Element, Package
from gateway.extract.source import Source

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


def shown_cells(source: Source, package: Package, main: str, workbook: Element) -> dict[str, Iterator[Row]]:
    """Return the rows of each sheet by its name, with the cells whose text is not calamine's."""
    links = package.relations(main)
    is_1904 = any(properties.get("date1904") in _ON for properties in workbook.iter("workbookPr"))
    shows = _styles(package, main, is_1904=is_1904)
    named = ((sheet.get("name", ""), links.get(sheet.get("r:id", ""))) for sheet in workbook.iter("sheet"))
    return {name: _rows(source, package, link.target, shows) for name, link in named if link is not None}


def _styles(package: Package, main: str, *, is_1904: bool) -> Sequence[Show | None]:
    """Return what shows the numbers of each style."""
    part = next((package.part(name) for name in package.linked(main, "styles")), None)
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
