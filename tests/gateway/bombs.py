"""Small files that cost more to read than they weigh, one kind for each weakness of a format."""

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from tests.gateway.documents import of_objects, word

_PARAGRAPH: Final = "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
_MERGED: Final = f"<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{_PARAGRAPH}</w:tc></w:tr>"
_LEVELS: Final = "abcdefghi"


def cell_over_columns(columns: int) -> bytes:
    """A DOCX of some 800 bytes with one cell over so many columns."""
    properties = f'<w:tcPr><w:gridSpan w:val="{columns}"/></w:tcPr>'
    return word(f"<w:tbl><w:tr><w:tc>{properties}{_PARAGRAPH}</w:tc></w:tr></w:tbl>")


def slow_pages(pages: int) -> bytes:
    """A small PDF that shows one page of many letters so many times."""
    return _pages(zlib.compress(b"BT /F 1 Tf " + b"(x) Tj " * 2_000), b"/FlateDecode", kids=b"3 0 R " * pages)


def _pages(content: bytes, filters: bytes, *, kids: bytes = b"3 0 R") -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
    return of_objects(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[%b]/Count %d>>" % (kids, kids.count(b"R")),
            page,
            b"<</Filter[%b]/Length %d>>stream\n%b\nendstream" % (filters, len(content), content),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        ]
    )


def _entities() -> bytes:
    """The billion laughs."""
    pairs = pairwise(_LEVELS)
    lines = "".join(f'<!ENTITY {outer} "{f"&{inner};" * 10}">' for inner, outer in pairs)
    return word("<w:p><w:r><w:t>&i;</w:t></w:r></w:p>", doctype=f'<!DOCTYPE x [<!ENTITY a "x">{lines}]>')


def _lying_archive() -> bytes:
    """An archive whose directory names a thousandth of an entry's size."""
    raw = word(_PARAGRAPH * 100_000)
    size = len(zipfile.ZipFile(io.BytesIO(raw)).read("word/document.xml"))
    return raw.replace(size.to_bytes(4, "little"), (size // 1000).to_bytes(4, "little"))


BOMBS: Final[Mapping[str, tuple[str, Callable[[], bytes], str]]] = {
    "two million page breaks": (
        "a.docx",
        lambda: word("<w:p><w:r>" + '<w:br w:type="page"/>' * 2_000_000 + "</w:r></w:p>"),
        "CPU",
    ),
    "three hundred thousand tables": (
        "a.docx",
        lambda: word(f"<w:tbl><w:tr><w:tc>{_PARAGRAPH}</w:tc></w:tr></w:tbl>" * 300_000),
        "CPU",
    ),
    "elements inside one another": (
        "a.docx",
        lambda: word("<w:sdt><w:sdtContent>" * 5_000 + _PARAGRAPH + "</w:sdtContent></w:sdt>" * 5_000),
        "nested",
    ),
    "an entry that unpacks to 300 MB": ("a.docx", lambda: word(" " * (300 << 20)), "unpacked"),
    "an entry that unpacks to more than it says": ("a.docx", _lying_archive, "damaged"),
    "entities of entities": ("a.docx", _entities, "damaged"),
    "elements of HTML inside one another": ("a.html", lambda: b"<div>" * 1_000_000 + b"x", "CPU|crashed"),
    "three hundred thousand attributes": (
        "a.html",
        lambda: b"<p " + b" ".join(b"a%d=1" % n for n in range(300_000)) + b">x",
        "CPU",
    ),
    "one page of a PDF twenty thousand times": (
        "a.pdf",
        lambda: slow_pages(20_000),
        "CPU",
    ),
    "a stream packed twice": (
        "a.pdf",
        lambda: _pages(zlib.compress(zlib.compress(b"\0" * (1 << 28), 9), 9), b"/FlateDecode/FlateDecode"),
        "damaged|no text|memory|crashed",
    ),
    "pages that contain themselves": ("a.pdf", lambda: _pages(b"", b"", kids=b"2 0 R"), "damaged|no text"),
}
"""By weakness: a file name, the file, and a word of the reason that it gets."""

HARMLESS: Final[Mapping[str, tuple[str, Callable[[], bytes], str]]] = {
    "one cell over a hundred million columns": ("a.docx", lambda: cell_over_columns(100_000_000), "x"),
    "cells merged over rows": (
        "a.docx",
        lambda: word("<w:tbl>" + _MERGED.replace("/>", ' w:val="restart"/>', 1) + _MERGED * 30_000 + "</w:tbl>"),
        "x",
    ),
    "a character set whose decoder is slow": (
        "a.html",
        lambda: b'<meta charset="punycode">' + b"a-" * 400_000 + b"z" * 200_000,
        "a-a-a-",
    ),
    "sixty thousand objects": (
        "a.pdf",
        lambda: (
            _pages(b"BT /F 1 Tf (x) Tj", b"", kids=b" ".join(b"%d 0 R" % n for n in range(6, 60_006)))[:-40]
            + b"1 0 obj\n" * 100_000
        ),
        "[page 1]",
    ),
}
"""What once was a bomb: a file name, the file, and some of its text."""
