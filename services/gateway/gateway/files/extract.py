"""Extracts the text of one file: reads its bytes from standard input, writes UTF-8 to standard output.

Runs as a separate process that hostile input may crash: it limits its own memory and CPU time before it reads a byte,
and has no access to secrets. Run: ``python -I extract.py NAME TYPE BYTES CPU_S``. Exits with 0, or with
3 and the reason on standard error.
"""

import codecs
import logging
import os
import re
import resource
import sys
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol, TypeAlias, cast

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph
    from selectolax.lexbor import LexborHTMLParser

UNREADABLE: Final = 3
PAGE_END: Final = "\f"
"""Stands at the end of each page, as in a text for a printer; a text without one has no pages."""
_HARD: Final = 'w:br[@w:type="page"]'
_RENDERED: Final = "w:lastRenderedPageBreak"
_DELETED: Final = ".//w:del | .//w:moveFrom | .//*[local-name()='Fallback']"
"""Tracked deletions, and the second copies of text boxes."""
_WRAPPERS: Final = (
    ".//w:sdt | .//w:sdtContent | .//w:ins | .//w:moveTo | .//w:customXml | .//w:smartTag | .//w:fldSimple"
)
"""Content controls, tracked insertions and others whose content belongs to what is around them."""
_LINE: Final = ".//w:p | .//w:r/w:cr | .//w:r/w:br[not(@w:type) or @w:type='textWrapping']"
_WORDS: Final = f".//w:t | .//m:t | .//w:r/w:tab | .//w:r/w:ptab | .//w:noBreakHyphen | {_LINE}"
_REFERENCES: Final = ".//w:footnoteReference | .//w:endnoteReference | .//w:commentReference"
_SIGNS: Final = {"tab": "\t", "ptab": "\t", "noBreakHyphen": "-", "p": "\n", "cr": "\n", "br": "\n"}
_NOTES: Final = {"footnotes": "footnote", "endnotes": "endnote", "comments": "comment"}
"""The parts of a DOCX that hold notes, by the end of their relation's type, and the element of a note."""
_BLOCK_BYTES: Final = 1 << 20
_NICENESS: Final = 10
"""A tenth of the share of other processes. At 19, a hundredth, files would wait for hours on a full machine."""
_UNZIPPED_BYTES: Final = 256 << 20
_BOMS: Final = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_INLINE: Final = ["a", "abbr", "b", "cite", "code", "em", "font", "i", "mark", "q", "small", "span", "strong", "u"]
"""Tags that do not separate the text around them."""
_CELLS: Final = frozenset({"td", "th"})
_BLOCKS: Final = "table, div, p + p, ul, ol, pre, blockquote, h1, h2, h3, h4, h5, h6"
"""What the cells of a table of data do not have."""
_PICTURE: Final = "[This page is a picture without text.]"
"""Stands for a page without text between others: its content must not be missed in silence."""
_CHARSET = re.compile(rb"<meta[^>]{0,200}charset=[\"']?([A-Za-z0-9_-]{1,40})", re.IGNORECASE)


class _Element(Protocol):
    """What is used of an XML element of lxml, which has no types."""

    tag: str
    text: str | None

    def xpath(self, path: str, /) -> Any: ...
    def iter(self, tag: str, /) -> "Iterator[_Element]": ...
    def get(self, name: str, /) -> str | None: ...


class Unreadable(Exception):
    """No text can be extracted from the file; the message gives the reason."""


def main(name: str, media_type: str, memory_bytes: str, cpu_s: str) -> int:
    """Extract the text and return the exit status."""
    limit_process(int(memory_bytes), int(cpu_s))
    logging.disable()  # standard error carries only the reason
    try:
        for part in text_of(sys.stdin.buffer, name=name, media_type=media_type):
            sys.stdout.buffer.write(part.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except Unreadable as error:
        return _refused(str(error))
    except MemoryError:
        return _refused("extraction ran out of memory")
    except RecursionError:
        return _refused("the file is nested too deeply")
    except Exception as error:  # noqa: BLE001 - a parser may raise anything; the file is at fault
        return _refused(f"the file is damaged ({type(error).__name__})")
    return 0


def limit_process(memory_bytes: int, cpu_s: int) -> None:
    """Limit memory and CPU time; forbid files, core dumps and child processes; let other work go first."""
    os.nice(_NICENESS)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))  # SIGXCPU, which says why; a second later SIGKILL
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE, resource.RLIMIT_NPROC):
        resource.setrlimit(kind, (0, 0))


def text_of(source: BinaryIO, *, name: str, media_type: str) -> Iterator[str]:
    """Yield the text in parts. Raises Unreadable, and any error of a parser."""
    head = source.read(_BLOCK_BYTES)
    return _reader(head, name.lower(), media_type.lower())(head, source)


Reader = Callable[[bytes, BinaryIO], Iterator[str]]


def _reader(head: bytes, name: str, media_type: str) -> Reader:
    """Choose a reader by the leading bytes, then by the file name."""
    if head.startswith(b"%PDF-"):
        return _pdf
    if head.startswith(b"PK\x03\x04"):
        return _docx
    if name.endswith((".html", ".htm", ".xhtml")) or "html" in media_type:
        return _html
    if name.endswith((".pdf", ".docx", ".doc", ".odt", ".rtf", ".epub", ".xlsx", ".pptx")):
        raise Unreadable("the format is unsupported, or the content does not match the file name")
    return _plain


def _plain(head: bytes, source: BinaryIO) -> Iterator[str]:
    encoding = _encoding(head)
    decoder = codecs.getincrementaldecoder(encoding)()
    block = head
    try:
        while block:
            yield _checked(decoder.decode(block))
            block = source.read(_BLOCK_BYTES)
        yield _checked(decoder.decode(b"", final=True))
    except UnicodeDecodeError:
        raise Unreadable(f"the file is not valid {encoding.removesuffix('-sig').upper()} text") from None


def _checked(part: str) -> str:
    if "\0" in part:
        raise Unreadable("the file is binary: it contains NUL bytes")
    return part


def _encoding(head: bytes) -> str:
    return next((name for bom, name in _BOMS.items() if head.startswith(bom)), "utf-8")


def _html(head: bytes, source: BinaryIO) -> Iterator[str]:
    from selectolax.lexbor import LexborHTMLParser

    raw = head + source.read()
    page = LexborHTMLParser(_html_text(raw))
    page.strip_tags(["script", "style", "noscript", "template", "svg"])
    page.unwrap_tags(_INLINE)
    page.merge_text_nodes()
    _join_cells(page)
    if page.body is None:
        raise Unreadable("the HTML has no body")
    title = page.css_first("title")
    if title is not None:
        yield f"{title.text(strip=True)}\n\n"
    yield page.body.text(separator="\n", strip=True)


def _join_cells(page: "LexborHTMLParser") -> None:
    """Make each row of a table one line, its cells in their order; tables that lay out a page stay as they are."""
    for row in page.css("tr"):
        cells = [cell for cell in row.iter() if cell.tag in _CELLS]
        if cells and not any(cell.css_first(_BLOCKS) is not None for cell in cells):
            row.replace_with(" | ".join(" ".join(cell.text(separator=" ").split()) for cell in cells))


def _html_text(raw: bytes) -> str:
    named = _CHARSET.search(raw, 0, 4096)
    encoding = _encoding(raw) if named is None else named[1].decode()
    try:
        return raw.decode(encoding)
    except (LookupError, UnicodeDecodeError):
        return raw.decode("windows-1252", "replace")


def _pdf(head: bytes, source: BinaryIO) -> Iterator[str]:
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(head + source.read()))
    if reader.is_encrypted and not reader.decrypt(""):
        raise Unreadable("the file is encrypted")
    texts = [page.extract_text().replace(PAGE_END, "\n") for page in reader.pages]
    is_scan = not any(map(str.strip, texts))
    for number, (page, text) in enumerate(zip(reader.pages, texts, strict=True), start=1):
        if not (is_scan or text.strip()) and page.images:
            text = _PICTURE
        yield f"[page {number}]\n\n{text}\n\n{PAGE_END}" if text.strip() else PAGE_END


def _docx(head: bytes, source: BinaryIO) -> Iterator[str]:
    from docx import Document
    from docx.table import Table

    raw = BytesIO(head + source.read())
    with zipfile.ZipFile(raw) as archive:
        if "word/document.xml" not in archive.namelist():
            raise Unreadable("the archive or document format is not supported")
        if sum(entry.file_size for entry in archive.infolist()) > _UNZIPPED_BYTES:
            raise Unreadable("the unpacked file is too large")
    document = Document(raw)
    _unwrap(document.element)
    notes, breaks = _notes(document), _rendered_or_hard(document.element)
    page = 1
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            cells = ([_words(cell._tc, notes) for cell in row.cells] for row in block.rows)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - as below
            yield "".join(" | ".join(row) + "\n" for row in cells)
            continue
        before, after = _breaks(block, breaks)
        yield _new_pages(page, before)
        yield f"{_words(block._p, notes)}\n"  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no public way
        yield _new_pages(page + before, after)
        page += before + after


def _unwrap(document: _Element) -> None:
    """Apply tracked changes, and put the content of wrappers in their place: python-docx passes over both."""
    for gone in document.xpath(_DELETED):
        gone.getparent().remove(gone)
    for wrapper in document.xpath(_WRAPPERS):
        for child in list(wrapper):
            wrapper.addprevious(child)
        wrapper.getparent().remove(wrapper)


_Notes: TypeAlias = dict[tuple[str, str], str]


def _notes(document: "Document") -> _Notes:
    """Return footnotes, endnotes and comments by kind and id."""
    from docx.oxml import parse_xml
    from docx.oxml.ns import qn

    found: _Notes = {}
    for relation in document.part.rels.values():
        kind = _NOTES.get(relation.reltype.rpartition("/")[2])
        if kind is None or relation.is_external:
            continue
        for note in cast(_Element, parse_xml(relation.target_part.blob)).iter(qn(f"w:{kind}")):
            author = _attribute(note, "author")
            title = f"{kind} by {author}" if author else kind
            text = "\n".join(_words(paragraph, {}) for paragraph in note.iter(qn("w:p")))
            found[kind, _attribute(note, "id")] = f" [{title}: {text.strip()}]"
    return found


def _attribute(element: _Element, name: str) -> str:
    from docx.oxml.ns import qn

    return element.get(qn(f"w:{name}")) or ""


def _words(element: _Element, notes: _Notes) -> str:
    """Return the text inside an element, with the text boxes and nested tables in it, and notes at their places."""
    found: list[_Element] = element.xpath(f"{_WORDS} | {_REFERENCES}")
    return "".join(_word(node, notes) for node in found).strip("\n")


def _word(node: _Element, notes: _Notes) -> str:
    kind = node.tag.rpartition("}")[2]
    if kind.endswith("Reference"):
        return notes.get((kind.removesuffix("Reference"), _attribute(node, "id")), "")
    return _SIGNS.get(kind) or node.text or ""


def _rendered_or_hard(document: _Element) -> str:
    """Return the path of page breaks: those of the last rendering where a word processor noted them."""
    return _RENDERED if document.xpath(f"boolean(.//{_RENDERED})") else _HARD


def _breaks(paragraph: "Paragraph", path: str) -> tuple[int, int]:
    """Return the page breaks before the paragraph's text, and those inside and behind it."""
    element = paragraph._p  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no public way
    found: list[_Element] = element.xpath(f".//{path} | .//w:t")
    texts = [number for number, node in enumerate(found) if _is_text(node)]
    breaks = len(found) - len(texts)
    before = texts[0] if texts else breaks
    return before, breaks - before


def _is_text(node: _Element) -> bool:
    return bool(node.xpath("boolean(self::w:t)"))


def _new_pages(page: int, count: int) -> str:
    return "".join(f"{PAGE_END}[page {page + number + 1}]\n\n" for number in range(count))


def _refused(reason: str) -> int:
    sys.stderr.write(reason)
    sys.stderr.flush()
    return UNREADABLE


if __name__ == "__main__":
    status = main(*sys.argv[1:5])
    sys.stdout.buffer.flush()
    os._exit(status)
