"""XLS and XLSB: numbers as their cells show them, errors, and comments."""

import io
import struct
from typing import Final

import pytest
import xlwt

from tests.gateway.documents import links, zipped
from tests.gateway.extracting import noted, text_of

CELLS: Final = (
    (0.15, "0%", "15%"),
    (1234.5, '"£"#,##0.00', "£1,234.50"),
    (45000, "yyyy-mm-dd", "2023-03-15"),
    (1.5, "[h]:mm", "36:00"),
    (7.25, "General", "7.25"),
    (-3, '0" kg"', "-3 kg"),
)
SHOWN: Final = " | ".join(shown for _, _, shown in CELLS)


def xls() -> bytes:
    """A workbook of two sheets, as xlwt writes it."""
    book, raw = xlwt.Workbook(), io.BytesIO()
    for name in ("Costs", "Errors"):
        sheet = book.add_sheet(name)
        sheet.write(0, 0, "Sum")
        for column, (value, code, _) in enumerate(CELLS, start=1):
            sheet.write(0, column, value, xlwt.easyxf(num_format_str=code))
    sheet.row(2).set_cell_error(1, "#N/A!")  # its name for it
    book.save(raw)
    return raw.getvalue()


def record(kind: int, content: bytes = b"") -> bytes:
    """A record of XLSB."""
    head, size = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7]), len(content)
    return head + (bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7])) + content


def wide(text: str) -> bytes:
    """A string of XLSB."""
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def xlsb(*, is_1904: bool = False, cut: int | None = None) -> bytes:
    """A workbook of one sheet: numbers in both of their forms, an error, a comment."""
    formats = record(615, struct.pack("<I", len(CELLS))) + b"".join(
        record(44, struct.pack("<H", 170 + at) + wide(code)) for at, (_, code, _) in enumerate(CELLS)
    )
    begin = record(617, struct.pack("<I", 1 + len(CELLS)))
    styles = b"".join(
        record(47, struct.pack("<HH", 0, number) + bytes(12)) for number in (0, *range(170, 170 + len(CELLS)))
    )
    cells = [record(0, struct.pack("<I", 0) + bytes(13)), record(6, struct.pack("<II", 0, 0) + wide("Sum"))]
    for column, (value, _, _) in enumerate(CELLS, start=1):
        place, packed = struct.pack("<II", column, column), struct.unpack("<q", struct.pack("<d", value))[0]
        whole = int(value) == value
        form = struct.pack("<i", int(value) << 2 | 2 if whole else packed >> 32)
        cells.append(
            record(2, place + form)
            if whole or packed & 0x3FFFFFFFF == 0
            else record(5, place + struct.pack("<d", value))
        )
    cells += [record(0, struct.pack("<I", 2) + bytes(13)), record(3, struct.pack("<II", 1, 0) + b"\x2a")]
    sheet = record(129) + record(148, struct.pack("<4I", 0, 2, 0, 6)) + record(145) + b"".join(cells) + record(146)
    comments = record(632, wide("Ada")) + record(635, struct.pack("<5I", 0, 2, 2, 1, 1) + bytes(16))
    parts = {
        "[Content_Types].xml": b"<Types/>",
        "_rels/.rels": links(("officeDocument", "xl/workbook.bin")).encode(),
        "xl/workbook.bin": record(153, struct.pack("<IIH", is_1904, 0, 0))
        + record(143) + record(156, struct.pack("<II", 0, 1) + wide("r1") + wide("Costs")) + record(144) + record(132),
        "xl/_rels/workbook.bin.rels": links(("worksheet", "worksheets/s1.bin"), ("styles", "styles.bin")).encode(),
        "xl/worksheets/s1.bin": sheet[:cut],
        "xl/worksheets/_rels/s1.bin.rels": links(("comments", "../comments1.bin")).encode(),
        "xl/comments1.bin": comments + record(637, b"\0" + wide("Ada:\nestimated")),
        "xl/styles.bin": formats + begin + styles + record(618),
    }  # fmt: skip
    return zipped(**parts)


async def test_cells_of_xls_are_read_as_they_are_shown() -> None:
    text = await text_of(xls(), "a.xls")
    assert text == f"[sheet 1: Costs]\n\nSum | {SHOWN}\n\n\f[sheet 2: Errors]\n\nSum | {SHOWN}\n | #N/A\n\n\f"


async def test_cells_errors_and_comments_of_xlsb_are_read_as_they_are_shown() -> None:
    text = await text_of(xlsb(), "a.xlsb")
    comment = "[comment on B3 by Ada: estimated]"
    assert text == f"[sheet 1: Costs]\n\nSum | {SHOWN}\n | #N/A\n{comment}\n\n\f"


async def test_days_of_xlsb_may_begin_in_1904() -> None:
    assert "2027-03-16" in await text_of(xlsb(is_1904=True), "a.xlsb")


@pytest.mark.parametrize("cut", range(200, 400, 20))
async def test_xlsb_whose_sheet_is_cut_off_is_read_as_far_as_it_goes(cut: int) -> None:
    text, _ = await noted(xlsb(cut=cut), "a.xlsb")
    assert "Sum | 15%" in text
