"""Chooses the reader of a file: by its leading bytes, then by its name and media type."""

import re
import zipfile
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from typing import BinaryIO, Final
from unicodedata import normalize

from gateway.extract.encoding import BOMS
from gateway.extract.plain import notebook, plain
from gateway.extract.source import PDF_WITHIN, Source, Unreadable

_BLOCK_BYTES: Final = 1 << 20
_UNZIPPED_BYTES: Final = 256 << 20
_OBJECT: Final = re.compile(rb"\d \d+ obj\b")
"""How a PDF goes on that has lost its mark; all readers find its objects."""
_OLE: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PICTURES: Final = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"II*\0", b"MM\0*", b"BM")
_ARCHIVES: Final = (b"\x1f\x8b", b"BZh", b"7z\xbc\xaf", b"Rar!", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x05\x06")
_ARCHIVE: Final = "it is an archive; unpack it and send the files in it"
_OTHER: Final = "the format is unsupported, or the content does not match the file name"
_BY_NAME: Final = (
    *(".pdf", ".docx", ".docm", ".dotx", ".odt", ".ods", ".odp", ".epub", ".rtf", ".msg"),
    *(".xlsx", ".xlsm", ".xlsb", ".ppt", ".pptx", ".pptm", ".pages", ".numbers", ".key", ".mobi", ".azw3"),
)
"""Names of formats whose leading bytes show them: another content does not match."""
_OFTEN_PAGES: Final = (".xls", ".doc")
"""Names that many programs give to a page or a table of commas, because Office opens it."""
_ARCHIVE_NAMES: Final = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst", ".jar")
_MAILBOX = re.compile(rb"From \S+ [^\n]{0,100}\d\d:\d\d[^\n]{0,40}\r?\n[A-Za-z-]+:")
_HEADINGS = re.compile(rb"(?:[A-Za-z][A-Za-z0-9-]{0,60}:[^\n]{0,2000}\n(?:[ \t][^\n]{0,2000}\n){0,100}){2,200}\r?\n")
_OF_MAIL: Final = (b"\nmime-version:", b"\nmessage-id:", b"\nreceived:")
_LIGATURES = re.compile("[\ufb00-\ufb06]")
"""Fonts draw them for ``fi`` and the like; no search writes them."""
_SHEETS: Final = (".xls", ".xlsx", ".xlsm", ".xlsb", ".ods", ".xlt", ".xltx")


def text_of(source: BinaryIO, *, name: str, media_type: str, ocr: str, notes: list[str]) -> Iterator[str]:
    """Yield the text in parts, ligatures as letters. Raises Unreadable, and any error of a parser."""
    head = source.read(_BLOCK_BYTES)
    for part in _read(Source(head, source, name.lower(), media_type.lower(), ocr, read=_read, notes=notes)):
        yield part if part.isascii() else _LIGATURES.sub(lambda found: normalize("NFKC", found[0]), part)


def _read(source: Source) -> Iterator[str]:
    """Return the text by the reader of the file's format. Raises Unreadable for a format without one."""
    head, name = source.head, source.name
    if b"%PDF-" in head[:PDF_WITHIN] or (name.endswith(".pdf") and _OBJECT.search(head, 0, PDF_WITHIN)):
        from gateway.extract.pdf import pdf

        return pdf(source)
    if head.lstrip().startswith(b"PK\x03\x04"):
        return _zipped(source)
    if head.startswith(_OLE):
        return _ole(source)
    if head.startswith(_PICTURES) or (head.startswith(b"RIFF") and head[8:12] == b"WEBP"):
        from gateway.extract.ocr import picture

        return picture(source)
    if head.startswith(_ARCHIVES) or name.endswith(_ARCHIVE_NAMES) or head[257:262] == b"ustar":
        raise Unreadable(_ARCHIVE)
    if head.lstrip().startswith(b"{\\rtf"):
        from gateway.extract.rtf import rtf

        return rtf(source)
    if name.endswith(_BY_NAME):
        raise Unreadable(_OTHER)
    return _written(source)


def _written(source: Source) -> Iterator[str]:
    """Return the text of a format that is text."""
    headings = _HEADINGS.match(source.head)
    if (
        source.name.endswith((".eml", ".mbox", ".mbx", ".mht", ".mhtml"))
        or source.media_type.startswith(("message/rfc822", "application/mbox"))
        or _MAILBOX.match(source.head)
        or (headings and any(name in b"\n" + headings[0].lower() for name in _OF_MAIL))
    ):
        from gateway.extract.mail import mail

        return mail(source)
    start = source.head.lstrip(b"".join(BOMS) + b" \t\r\n\0")[:200].replace(b"\0", b"").lower()
    is_page = start.startswith((b"<!doctype html", b"<html")) and not source.name.endswith((".txt", ".md"))
    is_page |= start.startswith(b"<") and not start.startswith(b"<?xml") and source.name.endswith(_OFTEN_PAGES)
    if source.name.endswith((".html", ".htm", ".xhtml")) or "html" in source.media_type or is_page:
        from gateway.extract.html import html

        return html(source)
    if source.name.endswith((".fodt", ".fods", ".fodp")):
        from gateway.extract.opendocument import flat

        return flat(source)
    return notebook(source) if source.name.endswith(".ipynb") else plain(source)


def _zipped(source: Source) -> Iterator[str]:
    raw = source.whole().lstrip()
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        entries = archive.infolist()
        archive.NameToInfo |= {entry.filename.replace("\\", "/"): entry for entry in entries}  # as .NET wrote folders
        if sum(entry.file_size for entry in entries) > _UNZIPPED_BYTES:
            raise Unreadable("the unpacked file is too large")
        names = archive.NameToInfo.keys()
        kind = archive.read("mimetype")[:200].decode("ascii", "replace").strip() if "mimetype" in names else ""
        if "META-INF/container.xml" in names and "opendocument" not in kind:
            from gateway.extract.book import book

            yield from book(source, archive)
        elif "content.xml" in names:
            from gateway.extract.opendocument import opendocument

            yield from opendocument(source, archive)
        elif "[Content_Types].xml" in names:
            yield from _office(source, archive, raw)
        else:
            raise Unreadable(_ARCHIVE)


def _office(source: Source, archive: zipfile.ZipFile, raw: bytes) -> Iterator[str]:
    """Return the text of a document, presentation or workbook, by the kind of its main part."""
    from gateway.extract.package import Package

    package = Package(archive)
    main = next(iter(package.linked("", "officeDocument")), "")
    root = None if main.endswith(".bin") else package.part(main)  # a binary workbook
    if main.endswith(".bin") or (root is not None and root.tag == "workbook"):
        from gateway.extract.sheets import comments_and_boxes, sheets, shown_cells

        if root is None:
            from gateway.extract.binary_cells import cells_of_xlsb, in_binary

            return sheets(source, raw, shown=in_binary(source, partial(cells_of_xlsb, package, main)))
        beside = comments_and_boxes(package, main, root)
        return sheets(source, raw, beside, shown_cells(source, package, main, root))
    if root is not None and root.tag == "document":
        from gateway.extract.word import word

        return word(source, package, main, root)
    if root is not None and root.tag == "presentation":
        from gateway.extract.slides import slides

        return slides(source, package, main, root)
    raise Unreadable("the archive or document format is not supported")


def _ole(source: Source) -> Iterator[str]:
    raw = source.whole()
    if "EncryptedPackage".encode("utf-16-le") in raw:
        raise Unreadable("the file is encrypted")
    is_other = any(stream.encode("utf-16-le") in raw for stream in ("WordDocument", "PowerPoint Document"))
    if source.name.endswith(_SHEETS) or ("Workbook".encode("utf-16-le") in raw and not is_other):
        from gateway.extract.binary_cells import cells_of_xls, in_binary
        from gateway.extract.sheets import sheets

        yield from sheets(source, raw, shown=in_binary(source, partial(cells_of_xls, raw)))
        return
    if source.name.endswith(".msg"):
        raise Unreadable("it is a mail of Outlook; save it as EML")
    raise Unreadable("it is of an Office before 2007; save it in the newer format, as DOCX or PPTX")
