"""Small files that cost more to read than they weigh, one kind for each weakness of a format."""

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

_WORDS: Final = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_TYPES: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_RELATION: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_PARAGRAPH: Final = "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
_MERGED: Final = f"<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{_PARAGRAPH}</w:tc></w:tr>"
_LEVELS: Final = "abcdefghi"


def docx(body: str, *, doctype: str = "", **parts: str) -> bytes:
    """A DOCX of three parts and these, packed as tightly as ZIP can."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
            f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{_TYPES}"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships">'
            f'<Relationship Id="r1" Type="{_RELATION}" Target="word/document.xml"/></Relationships>',
        )
        document = f"<w:document {_WORDS}><w:body>{body}</w:body></w:document>"
        archive.writestr("word/document.xml", f'<?xml version="1.0"?>{doctype}{document}')
        for name, content in parts.items():
            archive.writestr(f"word/{name}", content)
    return raw.getvalue()


def cell_over_columns(columns: int) -> bytes:
    """A DOCX of some 800 bytes with one cell over so many columns."""
    properties = f'<w:tcPr><w:gridSpan w:val="{columns}"/></w:tcPr>'
    return docx(f"<w:tbl><w:tr><w:tc>{properties}{_PARAGRAPH}</w:tc></w:tr></w:tbl>")


def slow_pages(pages: int) -> bytes:
    """A small PDF that shows one page of many letters so many times."""
    return _pages(zlib.compress(b"BT /F 1 Tf " + b"(x) Tj " * 2_000), b"/FlateDecode", kids=b"3 0 R " * pages)


def pdf(objects: Sequence[bytes]) -> bytes:
    """A PDF of these objects; the first one is its root."""
    raw, places = b"%PDF-1.7\n", list[int]()
    for number, content in enumerate(objects, start=1):
        places.append(len(raw))
        raw += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    end = b"trailer<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF" % (count, len(raw))
    return raw + b"xref\n0 %d\n0000000000 65535 f \n" % count + table + end


def _pages(content: bytes, filters: bytes, *, kids: bytes = b"3 0 R") -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
    return pdf(
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
    return docx("<w:p><w:r><w:t>&i;</w:t></w:r></w:p>", doctype=f'<!DOCTYPE x [<!ENTITY a "x">{lines}]>')


def _lying_archive() -> bytes:
    """An archive whose directory names a thousandth of an entry's size."""
    raw = docx(_PARAGRAPH * 100_000)
    size = len(zipfile.ZipFile(io.BytesIO(raw)).read("word/document.xml"))
    return raw.replace(size.to_bytes(4, "little"), (size // 1000).to_bytes(4, "little"))


BOMBS: Final[Mapping[str, tuple[str, Callable[[], bytes], str]]] = {
    "two million page breaks": (
        "a.docx",
        lambda: docx("<w:p><w:r>" + '<w:br w:type="page"/>' * 2_000_000 + "</w:r></w:p>"),
        "CPU",
    ),
    "three hundred thousand tables": (
        "a.docx",
        lambda: docx(f"<w:tbl><w:tr><w:tc>{_PARAGRAPH}</w:tc></w:tr></w:tbl>" * 300_000),
        "CPU",
    ),
    "elements inside one another": (
        "a.docx",
        lambda: docx("<w:sdt><w:sdtContent>" * 5_000 + _PARAGRAPH + "</w:sdtContent></w:sdt>" * 5_000),
        "nested",
    ),
    "an entry that unpacks to 300 MB": ("a.docx", lambda: docx(" " * (300 << 20)), "unpacked"),
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
        lambda: docx("<w:tbl>" + _MERGED.replace("/>", ' w:val="restart"/>', 1) + _MERGED * 30_000 + "</w:tbl>"),
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
