"""What we use of xlrd, which has no types."""

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

XL_CELL_NUMBER: int
XL_CELL_DATE: int
XL_CELL_ERROR: int
error_text_from_code: Mapping[int, str]

class Format:
    format_str: str

class XF:
    format_key: int

class Cell:
    ctype: int
    value: Any
    xf_index: int

class Note:
    author: str
    text: str

class Sheet:
    nrows: int
    cell_note_map: Mapping[tuple[int, int], Note]
    def row(self, rowx: int) -> Sequence[Cell]: ...

class Book:
    datemode: int
    format_map: Mapping[int, Format]
    xf_list: Sequence[XF]
    def sheet_names(self) -> Sequence[str]: ...
    def sheet_by_name(self, sheet_name: str) -> Sheet: ...
    def unload_sheet(self, sheet_name_or_index: str) -> None: ...

def cellname(rowx: int, colx: int) -> str: ...
def open_workbook(
    *,
    file_contents: bytes,
    logfile: TextIO,
    formatting_info: bool,
    on_demand: bool,
    ragged_rows: bool,
    ignore_workbook_corruption: bool,
) -> Book: ...
