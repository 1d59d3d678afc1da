"""Reads spreadsheets (XLSX, XLS, XLSB, ODS) by calamine: each row with a value is one line."""

import datetime as dt
from collections.abc import Iterator
from io import BytesIO

from python_calamine import CalamineWorkbook, PasswordError

from gateway.extract.source import Source, Unreadable, place


def sheets(source: Source, raw: bytes) -> Iterator[str]:
    """Yield the sheets. Raises Unreadable for an encrypted file."""
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
        lines = (" | ".join(map(_shown, row)).rstrip(" |") for row in rows)
        yield place("sheet", number, "\n".join(line for line in lines if line), title=name)


def _shown(cell: object) -> str:
    match cell:
        case bool():
            return str(cell).upper()
        case float():
            return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(round(cell, 12))
        case dt.datetime():
            return cell.isoformat(sep=" ").removesuffix(" 00:00:00")
        case _:
            return " ".join(str(cell).split())
