"""Reads spreadsheets (XLSX, XLS, XLSB) by calamine: each row with a value is one line.

Comments and boxes of XLSX, which calamine leaves out, stand behind the rows of their sheet.
"""

import datetime as dt
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from types import MappingProxyType
from typing import Final
from xml.etree.ElementTree import ParseError

from python_calamine import CalamineWorkbook, PasswordError

from gateway.extract.number_places import plain
from gateway.extract.package import Element, Package, words
from gateway.extract.sheet_cells import Row
from gateway.extract.source import Source, Unreadable, place

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
                drawings = filter(None, map(package.part, package.linked(link.target, "drawing")))
                boxes = (words(box) for drawing in drawings for box in drawing.iter("txBody"))
                found[sheet.get("name", "")] = [*_comments(package, link.target), *filter(None, boxes)]
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
