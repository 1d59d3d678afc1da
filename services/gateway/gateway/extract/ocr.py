"""Reads pictures by Tesseract, where the operator installed it and named its languages (``MEMLOOP_OCR``)."""

import os
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.extract.source import Source, Unreadable

if TYPE_CHECKING:
    from pypdfium2 import PdfBitmap


def picture(source: Source) -> Iterator[str]:
    """Yield the text of a picture. Raises Unreadable where pictures are not read."""
    if not source.ocr:
        raise Unreadable("it is a picture, and pictures are not read here (MEMLOOP_OCR)")
    yield _read(source.whole(), source.ocr)


def text_of_bitmap(bitmap: "PdfBitmap", languages: str) -> str:
    """Return the text of a rendered page, gray."""
    width, height, stride = bitmap.width, bitmap.height, bitmap.stride
    pixels = bytes(bitmap.buffer)
    rows = (pixels[row * stride : row * stride + width] for row in range(height))
    return _read(b"P5 %d %d 255\n" % (width, height) + b"".join(rows), languages)


def _read(image: bytes, languages: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the operator names the languages
            ["tesseract", "stdin", "stdout", "-l", languages],  # noqa: S607 - where the operator installed it
            input=image,
            capture_output=True,
            check=False,
            env={"PATH": os.defpath, "OMP_THREAD_LIMIT": "1"},
        )
    except FileNotFoundError:
        raise Unreadable("Tesseract is not installed, which MEMLOOP_OCR needs") from None
    if done.returncode != 0:
        raise Unreadable("Tesseract cannot read the picture")
    return done.stdout.decode("utf-8", "replace").replace("\f", "\n").strip()
