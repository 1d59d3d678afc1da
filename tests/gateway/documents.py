"""Small documents of every format, written by hand: each takes the texts of its pages, slides, sheets or mails."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from email.message import EmailMessage
from typing import Final

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject, NumberObject, PdfObject

_TYPES: Final = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
RELATIONS: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT: Final = "http://purl.oclc.org/ooxml/officeDocument/relationships"
_WORD: Final = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_WORD_SPACES: Final = (
    f'xmlns:w="{_WORD}" xmlns:r="{RELATIONS}" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)
_DRAWN: Final = "http://schemas.openxmlformats.org/drawingml/2006/main"
_SHOWN: Final = "http://schemas.openxmlformats.org/presentationml/2006/main"
_CELLS: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OPEN: Final = "urn:oasis:names:tc:opendocument:xmlns"
_OPEN_SPACES: Final = (
    " ".join(
        f'xmlns:{short}="{_OPEN}:{name}:1.0"'
        for short, name in (("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"))
    )
    + ' xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'
)


def of_objects(objects: Sequence[bytes]) -> bytes:
    """A PDF of these objects; the first one is its root."""
    raw, places = b"%PDF-1.7\n", list[int]()
    for number, content in enumerate(objects, start=1):
        places.append(len(raw))
        raw += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    count = len(objects) + 1
    end = b"trailer<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF" % (count, len(raw))
    return raw + b"xref\n0 %d\n0000000000 65535 f \n" % count + table + end


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page."""
    writer = PdfWriter()
    font = DictionaryObject(
        {NameObject("/Type"): NameObject("/Font"), NameObject("/Subtype"): NameObject("/Type1")}
        | {NameObject("/BaseFont"): NameObject("/Helvetica")}
    )
    for line in pages:
        writer.add_blank_page(200, 200)
        _draw(writer, len(writer.pages) - 1, f"BT /F 12 Tf 10 100 Td ({line}) Tj ET", "/Font", {NameObject("/F"): font})
    return _written(writer)


def with_picture(raw: bytes, *, page: int = 0, width: int = 1, height: int = 1, pixels: bytes = b"\0") -> bytes:
    """The PDF with nothing but a gray picture on a page."""
    writer = PdfWriter(clone_from=io.BytesIO(raw))
    picture = DecodedStreamObject()
    picture.set_data(pixels)
    picture |= {
        NameObject("/Type"): NameObject("/XObject"),
        NameObject("/Subtype"): NameObject("/Image"),
        NameObject("/Width"): NumberObject(width),
        NameObject("/Height"): NumberObject(height),
        NameObject("/BitsPerComponent"): NumberObject(8),
        NameObject("/ColorSpace"): NameObject("/DeviceGray"),
    }
    held = writer._add_object(picture)  # pyright: ignore[reportPrivateUsage] - no public way
    _draw(writer, page, "200 0 0 200 0 0 cm /I Do", "/XObject", {NameObject("/I"): held})
    return _written(writer)


def _draw(writer: PdfWriter, page: int, content: str, kind: str, held: dict[NameObject, PdfObject]) -> None:
    drawn = DecodedStreamObject()
    drawn.set_data(content.encode())
    writer.pages[page][NameObject("/Contents")] = writer._add_object(drawn)  # pyright: ignore[reportPrivateUsage] - no public way
    writer.pages[page][NameObject("/Resources")] = DictionaryObject({NameObject(kind): DictionaryObject(held)})


def _written(writer: PdfWriter) -> bytes:
    raw = io.BytesIO()
    writer.write(raw)
    return raw.getvalue()


def zipped(**parts: str | bytes) -> bytes:
    """An archive; ``__`` in a name is a slash, and the mimetype comes first."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name.replace("__", "/"), text)
    return raw.getvalue()


def unzipped(raw: bytes) -> dict[str, bytes]:
    """The parts of an archive."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def changed(raw: bytes, **parts: str | bytes) -> bytes:
    """The archive with these parts, new or in the place of its own."""
    return zipped(**unzipped(raw) | parts)


def links(*targets: tuple[str, str], space: str = RELATIONS) -> str:
    """A part of relations: kind and target, with the ids r1, r2 and so on."""
    each = "".join(
        f'<Relationship Id="r{number}" Type="{space}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, start=1)
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{each}</Relationships>'


def word(body: str, *, main: str = "document.xml", space: str = RELATIONS, doctype: str = "", **parts: str) -> bytes:
    """A DOCX; further parts go by kind of relation, such as ``numbering`` and ``styles``."""
    content = f"{doctype}<w:document {_WORD_SPACES}><w:body>{body}</w:body></w:document>"
    kinds = links(*((kind, f"{kind}.xml") for kind in parts), space=space)
    whole = {f"word/{kind}.xml": f'<w:{kind} xmlns:w="{_WORD}">{text}</w:{kind}>' for kind, text in parts.items()}
    begun = {"[Content_Types].xml": _TYPES, "_rels/.rels": links(("officeDocument", f"word/{main}"), space=space)}
    return zipped(**begun, **{f"word/{main}": content, f"word/_rels/{main}.rels": kinds}, **whole)


def paragraph(text: str, properties: str = "") -> str:
    """A paragraph of a DOCX."""
    return f"<w:p>{properties and f'<w:pPr>{properties}</w:pPr>'}<w:r><w:t>{text}</w:t></w:r></w:p>"


def _docx(*pages: str) -> bytes:
    hard = '<w:p><w:r><w:br w:type="page"/></w:r></w:p>'
    return word(hard.join(map(paragraph, pages)))


def _pptx(*slides: str) -> bytes:
    numbers = range(1, len(slides) + 1)
    ids = "".join(f'<p:sldId id="{255 + number}" r:id="r{number}"/>' for number in numbers)
    space = f'xmlns:p="{_SHOWN}" xmlns:a="{_DRAWN}" xmlns:r="{RELATIONS}"'
    shape = (
        "<p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld>"
    )
    parts = {f"ppt/slides/s{n}.xml": f"<p:sld {space}>{shape.format(slides[n - 1])}</p:sld>" for n in numbers}
    return zipped(
        **{"[Content_Types].xml": _TYPES, "_rels/.rels": links(("officeDocument", "ppt/presentation.xml"))},
        **{"ppt/presentation.xml": f"<p:presentation {space}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"},
        **{"ppt/_rels/presentation.xml.rels": links(*(("slide", f"slides/s{number}.xml") for number in numbers))},
        **parts,
    )


def xlsx(*sheets: str, value: str = "7.5") -> bytes:
    """A workbook with sheets named S1, S2 and so on, a text in the first cell of each and a number in the second."""
    numbers = range(1, len(sheets) + 1)
    named = "".join(f'<sheet name="S{number}" sheetId="{number}" r:id="r{number}"/>' for number in numbers)
    cell = f'<row r="1"><c r="A1" t="inlineStr"><is><t>{{}}</t></is></c><c r="B1"><v>{value}</v></c></row>'
    parts = {
        f"xl/worksheets/s{number}.xml": f'<worksheet xmlns="{_CELLS}"><sheetData>{cell.format(sheets[number - 1])}'
        "</sheetData></worksheet>"
        for number in numbers
    }
    workbook = f'<workbook xmlns="{_CELLS}" xmlns:r="{RELATIONS}"><sheets>{named}</sheets></workbook>'
    return zipped(
        **{"[Content_Types].xml": _TYPES, "_rels/.rels": links(("officeDocument", "xl/workbook.xml"))},
        **{"xl/workbook.xml": workbook},
        **{"xl/_rels/workbook.xml.rels": links(*(("worksheet", f"worksheets/s{number}.xml") for number in numbers))},
        **parts,
    )


def opened(kind: str, body: str, styles: str = "", **parts: str) -> bytes:
    """An OpenDocument file of a kind, with further parts by their names."""
    automatic = f"<office:automatic-styles>{styles}</office:automatic-styles>" if styles else ""
    body = f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    return zipped(
        mimetype=f"application/vnd.oasis.opendocument.{kind}",
        **{"META-INF/manifest.xml": f'<m:manifest xmlns:m="{_OPEN}:manifest:1.0"/>'},
        **{"content.xml": f"<office:document-content {_OPEN_SPACES}>{automatic}{body}</office:document-content>"},
        **parts,
    )


def _odt(*pages: str) -> bytes:
    return opened("text", "<text:soft-page-break/>".join(f"<text:p>{page}</text:p>" for page in pages))


def _odp(*slides: str) -> bytes:
    frame = "<draw:page><draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame></draw:page>"
    return opened("presentation", "".join(map(frame.format, slides)))


def _ods(*sheets: str) -> bytes:
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    table = '<table:table table:name="S{}"><table:table-row>{}</table:table-row></table:table>'
    return opened("spreadsheet", "".join(table.format(n, cell.format(text)) for n, text in enumerate(sheets, start=1)))


def _epub(*chapters: str) -> bytes:
    numbers = range(1, len(chapters) + 1)
    items = "".join(f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>' for n in numbers)
    spine = "".join(f'<itemref idref="c{number}"/>' for number in numbers)
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{}</p></body></html>'
    return zipped(
        mimetype="application/epub+zip",
        **{"META-INF/container.xml": '<container><rootfiles><rootfile full-path="o/b.opf"/></rootfiles></container>'},
        **{"o/b.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>"},
        **{f"o/c{number}.xhtml": page.format(chapters[number - 1]) for number in numbers},
    )


def mail(text: str, *, subject: str = "A note", encoding: str = "base64", attached: Mapping[str, bytes] = {}) -> bytes:
    """A mail with attachments."""
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject, "ada@example.org", "ben@example.org"
    message.set_content(text, cte=encoding)
    for name, raw in attached.items():
        message.add_attachment(raw, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes()


def _mbox(*mails: str) -> bytes:
    return b"\n\n".join(b"From ada@example.org Sat Nov 28 05:00:00 2026\n" + mail(text).rstrip() for text in mails)


def _timed(*texts: str) -> str:
    return "\n\n".join(f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{text}" for n, text in enumerate(texts, start=1))


PLACED: Final[Mapping[str, Callable[..., bytes]]] = {
    "a.pdf": pdf,
    "a.docx": _docx,
    "a.docm": _docx,
    "a.odt": _odt,
    "a.pptx": _pptx,
    "a.odp": _odp,
    "a.xlsx": xlsx,
    "a.ods": _ods,
    "a.epub": _epub,
    "a.mbox": _mbox,
    "a.txt": lambda *pages: "\f".join(pages).encode(),
}
"""Formats with places: the third text lies in the third of them."""
PLACELESS: Final[Mapping[str, Callable[..., bytes]]] = {
    "b.eml": lambda *texts: mail("\n".join(texts[:-1]), attached={"c.docx": _docx(texts[-1])}),
    "b.rtf": lambda *texts: (r"{\rtf1\ansi " + r"\par ".join(texts) + "}").encode(),
    "b.html": lambda *texts: "".join(f"<p>{text}</p>" for text in texts).encode(),
    "b.md": lambda *texts: "\n\n".join(texts).encode(),
    "b.csv": lambda *texts: "\n".join(f"{n};{text}" for n, text in enumerate(texts)).encode(),
    "b.tsv": lambda *texts: "\n".join(f"{n}\t{text}" for n, text in enumerate(texts)).encode(),
    "b.json": lambda *texts: json.dumps({"notes": texts}).encode(),
    "b.jsonl": lambda *texts: "\n".join(json.dumps({"note": text}) for text in texts).encode(),
    "b.srt": lambda *texts: _timed(*texts).encode(),
    "b.vtt": lambda *texts: f"WEBVTT\n\n{_timed(*texts)}".encode(),
    "b.py": lambda *texts: "\n".join(f"# {text}" for text in texts).encode(),
    "wide.txt": lambda *texts: "\n".join(texts).encode("utf-16-le"),
    "old.txt": lambda *texts: "\n".join([*texts, "caf\u00e9"]).encode("windows-1252"),
}
"""Formats whose evidence has no page."""
