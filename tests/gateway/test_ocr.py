"""Scans and pictures: refused with a reason, or read by Tesseract where the operator names its languages."""

import shutil
from dataclasses import replace
from typing import Final

import pypdfium2
import pytest

from tests.gateway.documents import pdf, with_picture
from tests.gateway.extracting import LIMITS, reason, text_of

OCR: Final = replace(LIMITS, ocr="eng", cpu_s=60)
WITH_TESSERACT = pytest.mark.skipif(shutil.which("tesseract") is None, reason="needs Tesseract")


def scan(text: str) -> tuple[bytes, bytes]:
    """A line of text as a picture (PGM), and a PDF of nothing but this picture."""
    bitmap = pypdfium2.PdfDocument(pdf(text))[0].render(scale=4, grayscale=True)
    pixels = bytes(bitmap.buffer)
    rows = [pixels[row * bitmap.stride : row * bitmap.stride + bitmap.width] for row in range(bitmap.height)]
    raw = with_picture(pdf(""), width=bitmap.width, height=bitmap.height, pixels=b"".join(rows))
    return b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + b"".join(rows), raw


@WITH_TESSERACT
async def test_a_scanned_page_is_read_where_the_operator_names_a_language() -> None:
    _, raw = scan("The locker code is 482.")
    assert "[page 1]\n\nThe locker code is 482." in await text_of(raw, "a.pdf", limits=OCR)


@WITH_TESSERACT
async def test_a_language_that_is_not_installed_is_named_in_the_reason() -> None:
    _, raw = scan("The locker code is 482.")
    assert await reason(raw, "a.pdf", replace(OCR, ocr="xyz")) == "Tesseract cannot read the picture"


async def test_a_scan_is_refused_without_ocr() -> None:
    picture, raw = scan("The locker code is 482.")
    assert await reason(raw, "a.pdf") == "the file contains no text (a scan?)"
    assert "binary" in await reason(picture, "a.pgm")
