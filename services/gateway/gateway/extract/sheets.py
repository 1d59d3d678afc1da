"""Reads spreadsheets (XLSX, XLS, XLSB) by calamine: each row with a value is one line.

Comments and boxes of XLSX, which calamine leaves out, stand behind the rows of their sheet, and errors in their cells.
"""

import datetime as dt
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from types import MappingProxyType
from typing import Final, TypeAlias
from xml.etree.ElementTree import ParseError

from python_calamine import CalamineWorkbook, PasswordError

from gateway.extract.package import Element, Package, words
from gateway.extract.source import Source, Unreadable, place

_NOTHING: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})
Errors: TypeAlias = Mapping[int, Mapping[int, str]]
"""What a sheet shows in the place of values, as ``#N/A``, by row and column from 0."""
_NO_ERRORS: Final[Mapping[str, Errors]] = MappingProxyType({})
_ERROR_BEGINS: Final = b't="e"'
_BLOCK_BYTES: Final = 1 << 20
_MOST_BYTES_OF_CELL: Final = 1 << 10
_ERROR = re.compile(
    rb'<c\b(?=[^>]{0,200}\bt="e")[^>]{0,200}\br="([A-Z]{1,3})(\d{1,7})"[^>]{0,200}>'
    rb"(?:<f\b[^<]{0,500}(?:</f>)?)?<v>(#[A-Z0-9/!?_]{1,16})</v>"
)
"""A cell whose value is an error, with its place. A parser of XML takes five times as long as calamine."""


def sheets(
    source: Source,
    raw: bytes,
    beside: Mapping[str, Sequence[str]] = _NOTHING,
    errors: Mapping[str, Errors] = _NO_ERRORS,
) -> Iterator[str]:
    """Yield the sheets; ``beside`` holds lines behind the rows, by the sheet's name.

    ``errors``, by the sheet's name too, fill cells that calamine leaves empty. Raises Unreadable for an encrypted file.
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
        wrong = errors.get(name, {})
        cells = (list(map(_shown, row)) for row in rows)
        filled = (
            [wrong[at].get(column, cell) for column, cell in enumerate(row)] if at in wrong else row
            for at, row in enumerate(cells)
        )
        lines = (" | ".join(row).rstrip(" |") for row in filled)
        shown = [*(line for line in lines if line), *beside.get(name, ())]
        yield place("sheet", number, "\n".join(shown), title=name)


def errors_of(package: Package, main: str, workbook: Element) -> dict[str, Errors]:
    """Return the errors in the cells of XLSX, by the name of their sheet."""
    links = package.relations(main)
    named = ((sheet.get("name", ""), links.get(sheet.get("r:id", ""))) for sheet in workbook.iter("sheet"))
    return {name: _errors(package, link.target) for name, link in named if link is not None}


def _errors(package: Package, sheet: str) -> Errors:
    errors = defaultdict[int, dict[int, str]](dict)
    if sheet in package.archive.NameToInfo:
        with package.archive.open(sheet) as part:
            rest = b""
            while block := part.read(_BLOCK_BYTES):
                block = rest + block
                for found in _ERROR.finditer(block) if _ERROR_BEGINS in block else ():
                    column = 0
                    for letter in found[1]:
                        column = 26 * column + letter - ord("@")
                    errors[int(found[2]) - 1][column - 1] = found[3].decode()
                rest = block[-_MOST_BYTES_OF_CELL:]
    return errors


def comments_and_boxes(package: Package, main: str, workbook: Element) -> dict[str, list[str]]:
    """Return a line for each comment and each box of text, by the name of its sheet."""
    links, found = package.relations(main), dict[str, list[str]]()
    for sheet in workbook.iter("sheet"):
        link = links.get(sheet.get("r:id", ""))
        if link is not None:
            with suppress(ParseError):  # they are not worth the cells
                found[sheet.get("name", "")] = [*_comments(package, link.target), *_boxes(package, link.target)]
    return found


def _comments(package: Package, sheet: str) -> Iterator[str]:
    for name in package.linked(sheet, "comments"):
        part = package.part(name)
        if part is None:
            continue
        authors = dict(enumerate(words(author) for author in part.iter("author")))
        for comment in part.iter("comment"):
            number = comment.get("authorId", "")
            author = authors.get(int(number), "") if number.isdecimal() else ""
            by = f" by {author}" if author and not author.startswith("tc=") else ""  # the id of a thread
            if text := " ".join("".join(run.text or "" for run in comment.iter("t")).split()):
                yield f"[comment on {comment.get('ref', '')}{by}: {text}]"


def _boxes(package: Package, sheet: str) -> Iterator[str]:
    for part in map(package.part, package.linked(sheet, "drawing")):
        yield from (words(box) for box in (part.iter("txBody") if part is not None else ()) if words(box))


def _shown(cell: object) -> str:
    match cell:
        case bool():
            return str(cell).upper()
        case float():
            return f"{cell:.15g}"  # as many digits as a spreadsheet keeps
        case dt.datetime():
            return cell.isoformat(sep=" ").removesuffix(" 00:00:00")
        case dt.timedelta():
            minutes, seconds = divmod(round(cell.total_seconds()), 60)
            return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
        case _:
            return " ".join(str(cell).split())
