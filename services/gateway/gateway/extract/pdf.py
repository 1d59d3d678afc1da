"""Reads PDF by PDFium: the text of each page with what its form holds, notes, and pictures where OCR is on.

Two columns of prose that a PDF writes line by line across both: the left one is read first, then the right one.

A table of two columns looks alike. Columns of prose are told by their lines: most are as long as their column is wide.
"""

import ctypes
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

import pypdfium2
from pypdfium2 import PdfTextPage
from pypdfium2 import raw as pdfium

from gateway.extract.ocr import text_of_bitmap
from gateway.extract.source import PAGE_END, Source, Unreadable, place

_LEAST_LINES: Final = 6
"""In each column."""
_FULL_LINE: Final = 0.75
_MOSTLY: Final = 0.7
_FAR: Final = 1e6
_MOST_RUNS: Final = 2_000


@dataclass(frozen=True, slots=True)
class _Run:
    left: float
    bottom: float
    right: float
    top: float


def page_text(page: PdfTextPage) -> str:
    """Return a page's text; columns that are written line by line are read one after the other."""
    count = page.count_rects()
    runs = [_Run(*page.get_rect(number)) for number in range(count)] if 2 * _LEAST_LINES <= count <= _MOST_RUNS else []
    gutter = _gutter(runs)
    if gutter is None:
        return page.get_text_range()
    inside = [run for run in runs if run.right <= gutter or run.left >= gutter]
    crossing = [run for run in runs if run not in inside]
    middle = median(run.top for run in inside)
    top = min((run.bottom for run in crossing if run.bottom > middle), default=_FAR)
    bottom = max((run.top for run in crossing if run.top < middle), default=-_FAR)
    columns = [(-_FAR, bottom, gutter, top), (gutter, bottom, _FAR, top)]
    parts = [(-_FAR, top, _FAR, _FAR), *columns, (-_FAR, -_FAR, _FAR, bottom)]
    return "\r\n".join(filter(None, (page.get_text_bounded(*part) for part in parts if part[1] < part[3])))


def _gutter(runs: list[_Run]) -> float | None:
    """Return where two columns of prose part, if their lines are written in turns."""
    if not runs:
        return None
    middle = (min(run.left for run in runs) + max(run.right for run in runs)) / 2
    left = [run for run in runs if run.right <= middle]
    right = [run for run in runs if run.left >= middle]
    if min(len(left), len(right)) < _LEAST_LINES or len(left) + len(right) < _MOSTLY * len(runs):
        return None
    beside = (abs(one.bottom - other.bottom) < one.top - one.bottom for one, other in pairwise(runs))
    over = (one.right <= middle <= other.left for one, other in pairwise(runs))
    turns = sum(near and crosses for near, crosses in zip(beside, over, strict=True))
    if turns < _MOSTLY * min(len(left), len(right)):
        return None
    for column in (left, right):
        width = max(run.right for run in column) - min(run.left for run in column)
        if sum(run.right - run.left >= _FULL_LINE * width for run in column) < _MOSTLY * len(column):
            return None
    return middle


_PICTURE: Final = "[This page is a picture without text.]"
"""Stands for a page without text between others: its content must not be missed in silence."""
_HYPHEN = re.compile("(\\w)[\x02\ufffe\xad](?:\\r?\\n)?(?=(\\w))")
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
_TICKED: Final = frozenset({pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON})


def pdf(source: Source) -> Iterator[str]:
    """Yield the pages. Raises Unreadable for an encrypted file, and for one that PDFium cannot open."""
    raw = source.whole()
    try:
        document = pypdfium2.PdfDocument(raw[raw.index(b"%PDF-") :])
    except pypdfium2.PdfiumError as error:
        locked = error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY)
        raise Unreadable("the file is encrypted" if locked else "the file is damaged (PDF)") from None
    document.init_forms()
    if document.get_formtype() == pdfium.FORMTYPE_XFA_FULL:
        source.notes.append("the fields of an XFA form")
    texts = [_page(document, number, source.ocr) for number in range(len(document))]
    is_scan = all(text is None or not text.strip() for text in texts)
    pictures = list[int]()
    for number, text in enumerate(texts, start=1):
        if text is None:
            pictures.append(number)
        shown = _PICTURE if text is None and not is_scan else text or ""
        yield place("page", number, shown) if shown.strip() else PAGE_END
    if pictures and not is_scan:
        numbers = ", ".join(map(str, pictures[:20])) + (", ..." if len(pictures) > 20 else "")
        source.notes.append(f"pages that are pictures without text: {numbers}")
    source.note(document.count_attachments(), "attachment", "attachments")


def _page(document: pypdfium2.PdfDocument, number: int, ocr: str) -> str | None:
    """Return a page's text; None when it is a picture without text."""
    try:
        page = document[number]
        said = _beside(document, page)
        text = _cleaned(page_text(page.get_textpage()))
        # Make fields and annotations part of the page, if there are any
        if pdfium.FPDFPage_GetAnnotCount(page) and (
            pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY) == pdfium.FLATTEN_SUCCESS
        ):
            page.close()
            page = document[number]
            flat = _cleaned(page_text(page.get_textpage()))
            # Some pages lose the encoding of their fonts by it; what their fields hold stands beside them then.
            lost = Counter(text.split()) - Counter(flat.split())
            text = flat if lost.total() < len(text.split()) / 2 else text
    except pypdfium2.PdfiumError:
        return ""
    squeezed = "".join(text.split())
    missing = [line for value, line in said if not value or "".join(value.split()) not in squeezed]
    whole = "\n".join([text, *missing])
    if not whole.strip() and next(iter(page.get_objects([pdfium.FPDF_PAGEOBJ_IMAGE])), None) is not None:
        return text_of_bitmap(page.render(scale=_OCR_SCALE, grayscale=True), ocr) if ocr else None
    return whole


def _beside(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage) -> list[tuple[str, str]]:
    """Return fields and notes of a page: the value that may stand on the page, if any, and a line for it."""
    found = list[tuple[str, str]]()
    for index in range(pdfium.FPDFPage_GetAnnotCount(page)):
        annotation = pdfium.FPDFPage_GetAnnot(page, index)
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        if kind in _MARKED and (words := _string(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")):
            author = _string(pdfium.FPDFAnnot_GetStringValue, annotation, b"T")
            found.append(("", f"[note by {author}: {words}]" if author else f"[note: {words}]"))
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
    return found


def _string(call: Callable[..., int], *arguments: object) -> str:
    """Return a string that PDFium writes into a buffer."""
    size = call(*arguments, None, 0)
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    call(*arguments, buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")


def _cleaned(text: str) -> str:
    """Join words that hyphens part at line ends, and drop what is no character."""
    joined = _HYPHEN.sub(lambda found: found[1] if found[2].islower() else f"{found[1]}-", text)
    return _CONTROLS.sub(" ", joined.replace("\x02", "-").replace("\r\n", "\n"))
