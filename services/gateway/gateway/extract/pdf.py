"""Reads PDF by PDFium: the text of each page with what its form holds, notes, and pictures where OCR is on."""

import ctypes
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pypdfium2
from pypdfium2 import raw as pdfium

from gateway.extract.ocr import text_of_bitmap
from gateway.extract.page_text import page_text
from gateway.extract.source import PAGE_END, PDF_WITHIN, Source, Unreadable, aside, place

_PICTURE: Final = "[This page is a picture without text.]"
"""Stands for a page without text between others: its content must not be missed in silence."""
_HYPHEN = re.compile("[\x02\ufffe\xad](?<=\\w.)(?:\\r?\\n)?(?=(\\w))")
"""How PDFium shows the hyphen of a word that goes on in the next line."""
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f\ufffe\uffff]")
_OCR_SCALE: Final = 300 / 72
_MARKED: Final = frozenset(
    (
        *(pdfium.FPDF_ANNOT_TEXT, pdfium.FPDF_ANNOT_HIGHLIGHT, pdfium.FPDF_ANNOT_UNDERLINE),
        *(pdfium.FPDF_ANNOT_STRIKEOUT, pdfium.FPDF_ANNOT_SQUIGGLY, pdfium.FPDF_ANNOT_CARET),
    )
)
"""Annotations whose words lie in a window of their own, and not on the page."""
_TEXTLESS: Final = frozenset({pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP})
_NAME_CHARS: Final = 100
_SAMPLE_CHARS: Final = 16
_CODED: Final = 0.25
_TICKED: Final = frozenset({pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON})


@dataclass(frozen=True, slots=True)
class _Page:
    """A page: its text, None for a picture without text, and whether many letters are codes without a meaning.

    A lost one is named in the file, but cannot be read.
    """

    text: str | None
    is_coded: bool = False
    is_lost: bool = False


def pdf(source: Source) -> Iterator[str]:
    """Yield the pages. Raises Unreadable for an encrypted file, and for one that PDFium cannot open."""
    raw = source.whole()
    begin = raw.find(b"%PDF-", 0, PDF_WITHIN)
    raw = b"%PDF-1.4\n" + raw if begin < 0 else raw[begin:]
    document = _opened(source, raw)
    if document.get_formtype() == pdfium.FORMTYPE_XFA_FULL:
        source.notes.append("the fields of an XFA form")
    pages = [_page(document, number, source.ocr) for number in range(len(document))]
    coded = [number for number, page in enumerate(pages) if page.is_coded]
    if coded:
        from gateway.extract.rewritten import with_letters

        mended = with_letters(raw)
        document = document if mended is None else _opened(source, mended)
        for number in coded:
            again = _page(document, number, source.ocr, part_codes=True)
            if mended is None or _letters(again) >= _letters(pages[number]):
                pages[number] = again
        coded = [number for number in coded if pages[number].is_coded]
        for number in coded if source.ocr else ():
            pages[number] = _Page(_seen(document[number], source.ocr) or pages[number].text)
    is_scan = all(page.text is None or not page.text.strip() for page in pages)
    for number, page in enumerate(pages, start=1):
        shown = _PICTURE if page.text is None and not is_scan else page.text or ""
        yield place("page", number, shown) if shown.strip() else PAGE_END
    pictures = [number for number, page in enumerate(pages) if page.text is None]
    source.note_pages("pages that are pictures without text", [] if is_scan else pictures)
    source.note_pages("pages whose letters have no Unicode", coded)
    source.note_pages("pages that cannot be read", [number for number, page in enumerate(pages) if page.is_lost])
    yield from _attachments(source, document)


def _opened(source: Source, raw: bytes) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(raw)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            from gateway.extract.rewritten import unlocked

            again = unlocked(raw)
            if again is None:
                raise Unreadable("the file is encrypted") from None
        else:
            from gateway.extract.cut_off import with_end

            again = with_end(raw)
            if again is None:
                raise Unreadable("the file is damaged (PDF)") from None
            source.notes.append("what is missing from the file, which is cut off or damaged")
        document = pypdfium2.PdfDocument(again)
    document.init_forms()
    return document


def _attachments(source: Source, document: pypdfium2.PdfDocument) -> Iterator[str]:
    """Yield the files that the document carries; a portfolio is nothing else."""
    for number in range(document.count_attachments()):
        attachment = document.get_attachment(number)
        name = attachment.get_name()[:_NAME_CHARS]
        text = source.attached(name, lambda attachment=attachment: bytes(attachment.get_data()))
        if text is not None:
            yield f"[attachment: {name}]\n\n{text.replace(PAGE_END, chr(10))}\n"


def _page(document: pypdfium2.PdfDocument, number: int, ocr: str, *, part_codes: bool = False) -> _Page:
    """Return a page. ``part_codes``: codes without a letter part words; PDFium leaves some out.

    Without it a page with such codes is not read letter by letter: it is read again with it.
    """
    try:
        page = document[number]
        said, is_drawn_on = _beside(document, page)
        letters = page.get_textpage()
        sample = range(0, letters.count_chars(), letters.count_chars() // _SAMPLE_CHARS + 1)
        unknown = sum(pdfium.FPDFText_HasUnicodeMapError(letters.raw, index) == 1 for index in sample)
        is_coded = unknown > 0 and unknown >= _CODED * len(sample)
        plain = letters.get_text_range()
        # Make fields and annotations part of the page, if there are any
        if is_drawn_on and pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY) == pdfium.FLATTEN_SUCCESS:
            page = document[number]
            drawn = page.get_textpage()
            flat = drawn.get_text_range()
            # Some pages lose the encoding of their fonts by it; what their fields hold stands beside them then.
            lost = Counter(plain.split()) - Counter(flat.split())
            if lost.total() <= len(plain.split()) / 2:
                letters, plain = drawn, flat
        if part_codes or not is_coded:
            plain = page_text(letters, plain, by_letter=part_codes and is_coded)
        # Join words that hyphens part at line ends, and drop what is no character
        text = _HYPHEN.sub(lambda found: "" if found[1].islower() else "-", plain)
        text = _CONTROLS.sub(" ", text.replace("\x02", "-").replace("\r\n", "\n"))
    except pypdfium2.PdfiumError:
        return _Page("", is_lost=True)
    squeezed = "".join(text.split())
    missing = [line for value, line in said if not value or "".join(value.split()) not in squeezed]
    whole = "\n".join([text, *missing])
    if is_coded or whole.strip() or next(iter(page.get_objects([pdfium.FPDF_PAGEOBJ_IMAGE])), None) is None:
        return _Page(whole, is_coded)
    return _Page(_seen(page, ocr) if ocr else None)


def _letters(page: _Page) -> int:
    return sum(map(str.isalnum, page.text or ""))


def _seen(page: pypdfium2.PdfPage, ocr: str) -> str:
    return text_of_bitmap(page.render(scale=_OCR_SCALE, grayscale=True), ocr)


def _beside(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> tuple[list[tuple[str, str]], bool]:
    """Return fields and notes of a page: the value that may stand on the page, if any, and a line for it.

    Return too whether an annotation may draw a text.
    """
    found, is_drawn_on = list[tuple[str, str]](), False
    for index in range(pdfium.FPDFPage_GetAnnotCount(page)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        is_drawn_on |= kind not in _TEXTLESS
        if kind in _MARKED and (words := _string(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")):
            author = _string(pdfium.FPDFAnnot_GetStringValue, annotation, b"T")
            found.append(("", aside("note", words, author)))
        form = document.formenv
        if kind == pdfium.FPDF_ANNOT_WIDGET and form is not None:
            name = _string(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, annotation) or _string(
                pdfium.FPDFAnnot_GetFormFieldName, form, annotation
            )
            value = _string(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation)
            if pdfium.FPDFAnnot_GetFormFieldType(form, annotation) in _TICKED:
                if pdfium.FPDFAnnot_IsChecked(form, annotation):
                    found.append(("", f"[{name}: ticked{'' if value in ('', 'Yes', 'On') else f' ({value})'}]"))
            elif value:
                found.append((value, f"[{name}: {value}]"))
        pdfium.FPDFPage_CloseAnnot(annotation)
    return found, is_drawn_on


def _string(call: Callable[..., int], *arguments: object) -> str:
    """Return a string that PDFium writes into a buffer."""
    size = call(*arguments, None, 0)
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    call(*arguments, buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")
