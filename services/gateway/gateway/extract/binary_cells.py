"""Reads what calamine leaves out of the cells of XLSB and XLS: the formats of their numbers, errors, comments.

The records of XLSB (MS-XLSB 2.1.4) are a kind and a size, each in groups of seven bits, then the content. XLS is read
by xlrd.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from struct import pack, unpack, unpack_from
from typing import Final

import xlrd

from gateway.extract.number_formats import BUILT_IN, shower
from gateway.extract.number_places import Show
from gateway.extract.package import Package
from gateway.extract.sheets import Row
from gateway.extract.source import Source, aside

_ROW, _RK, _ERROR, _REAL, _FORMULA_REAL, _FORMULA_ERROR = 0, 2, 3, 5, 9, 11
_FORMAT, _STYLE, _STYLES_BEGIN, _STYLES_END, _WORKBOOK, _SHEET = 44, 47, 617, 618, 153, 156
_AUTHOR, _COMMENT, _COMMENT_TEXT = 632, 635, 637
_BEHIND: Final = 1 << 20
"""A row behind the last one of a sheet."""
_ERROR_TEXT: Final = "#ERROR!"
_PLAIN: Final = "the formats of some numbers"


def in_binary(source: Source, cells: Callable[[], Mapping[str, Iterator[Row]]]) -> dict[str, Iterator[Row]]:
    """Return the rows of each sheet as far as they can be read: calamine has the values of all."""
    try:
        return {name: _noted(source, rows) for name, rows in cells().items()}
    except Exception:  # noqa: BLE001 - it reads some files that xlrd does not
        source.notes.append(_PLAIN)
        return {}


def _noted(source: Source, rows: Iterator[Row]) -> Iterator[Row]:
    try:
        yield from rows
    except Exception:  # noqa: BLE001 - as above
        source.notes.append(_PLAIN)


def cells_of_xlsb(package: Package, main: str) -> dict[str, Iterator[Row]]:
    """Return the rows of each sheet by its name, with the cells whose text is not calamine's, and the comments."""
    links, is_1904, sheets = package.relations(main), False, dict[str, str]()
    for kind, data in _records(package, main):
        if kind == _WORKBOOK:
            is_1904 = data[0] & 1 == 1
        elif kind == _SHEET:
            link, end = _string(data, 8)
            name, _ = _string(data, end)
            if link in links:
                sheets[name] = links[link].target
    codes, shows, is_inside = dict(BUILT_IN), list[Show | None](), False
    for kind, data in (record for name in package.linked(main, "styles") for record in _records(package, name)):
        if kind == _FORMAT:
            codes[int.from_bytes(data[:2], "little")] = _string(data, 2)[0]
        elif kind in (_STYLES_BEGIN, _STYLES_END):
            is_inside = kind == _STYLES_BEGIN
        elif kind == _STYLE and is_inside:
            code = codes.get(int.from_bytes(data[2:4], "little"))
            shows.append(None if code is None else shower(code, is_1904=is_1904))
    return {
        name: chain(_rows_of_xlsb(package, part, shows), _comments_of_xlsb(package, part))
        for name, part in sheets.items()
    }


def _records(package: Package, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a part; none behind one that is cut off."""
    raw, at = package.archive.read(name), 0
    while at < len(raw):
        numbers = [0, 0]
        for place in (0, 1):
            shift = 0
            while at < len(raw):
                byte = raw[at]
                numbers[place] |= (byte & 0x7F) << shift
                at, shift = at + 1, shift + 7
                if byte < 0x80:
                    break
        kind, size = numbers
        yield kind, raw[at : at + size]
        at += size


def _string(data: bytes, at: int) -> tuple[str, int]:
    """Return a string at a place, and the place behind it."""
    (chars,) = unpack_from("<I", data, at)
    end = at + 4 + 2 * (chars if chars != 0xFFFFFFFF else 0)
    return data[at + 4 : end].decode("utf-16-le", "replace"), end


def _rows_of_xlsb(package: Package, sheet: str, shows: Sequence[Show | None]) -> Iterator[Row]:
    at, cells = 0, dict[int, str]()
    for kind, data in _records(package, sheet):
        if kind == _ROW:
            if cells:
                yield at, cells
            at, cells = int.from_bytes(data[:4], "little"), {}
        elif kind in (_ERROR, _FORMULA_ERROR):
            cells[int.from_bytes(data[:4], "little")] = xlrd.error_text_from_code.get(data[8], _ERROR_TEXT)
        elif kind in (_RK, _REAL, _FORMULA_REAL):
            show = shows[int.from_bytes(data[4:7], "little")]
            if show is not None:
                cells[int.from_bytes(data[:4], "little")] = show(_value(kind, data))
    if cells:
        yield at, cells


def _comments_of_xlsb(package: Package, sheet: str) -> Iterator[Row]:
    """Yield a row for each comment of a sheet."""
    authors, place = list[str](), (0, 0, "")
    for kind, data in (record for name in package.linked(sheet, "comments") for record in _records(package, name)):
        if kind == _AUTHOR:
            authors.append(_string(data, 0)[0])
        elif kind == _COMMENT:
            author, row, _, column = unpack_from("<4I", data)
            place = row, column, authors[author]
        elif kind == _COMMENT_TEXT:
            yield _BEHIND, _comment(*place, _string(data, 1)[0])


def _value(kind: int, data: bytes) -> float:
    """Return the number of a cell: a double, or in four bytes a whole number or the first half of a double."""
    if kind != _RK:
        return unpack_from("<d", data, 8)[0]
    (packed,) = unpack_from("<i", data, 8)
    value: float = packed >> 2 if packed & 2 else unpack("<d", pack("<q", (packed & ~3) << 32))[0]
    return value / 100 if packed & 1 else value


def cells_of_xls(raw: bytes) -> dict[str, Iterator[Row]]:
    """Return the same of an XLS."""
    with Path(os.devnull).open("w", encoding="ascii") as log:
        book = xlrd.open_workbook(
            file_contents=raw,
            logfile=log,
            formatting_info=True,
            on_demand=True,
            ragged_rows=True,
            ignore_workbook_corruption=True,
        )
    ids = [style.format_key for style in book.xf_list]
    codes = [BUILT_IN.get(id_) or book.format_map[id_].format_str for id_ in ids]
    shows = [shower(code, is_1904=book.datemode == 1) for code in codes]
    return {name: _rows_of_xls(book, name, shows) for name in book.sheet_names()}


def _rows_of_xls(book: xlrd.Book, name: str, shows: Sequence[Show | None]) -> Iterator[Row]:
    sheet = book.sheet_by_name(name)
    for number in range(sheet.nrows):
        cells = dict[int, str]()
        for column, cell in enumerate(sheet.row(number)):
            if cell.ctype == xlrd.XL_CELL_ERROR:
                cells[column] = xlrd.error_text_from_code.get(cell.value, _ERROR_TEXT)
            elif cell.ctype in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE) and (show := shows[cell.xf_index]) is not None:
                cells[column] = show(cell.value)
        if cells:
            yield number, cells
    for (row, column), note in sorted(sheet.cell_note_map.items()):
        yield _BEHIND, _comment(row, column, note.author, note.text)
    book.unload_sheet(name)


def _comment(row: int, column: int, author: str, text: str) -> dict[int, str]:
    said = " ".join(text.removeprefix(f"{author}:").split())
    return {0: aside(f"comment on {xlrd.cellname(row, column)}", said, author)} if said else {}
