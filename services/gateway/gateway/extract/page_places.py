"""The letters of a PDF's page and their places: each drawn letter once, and the spaces between them."""

import re
import sys
from collections import deque
from collections.abc import Iterator
from ctypes import byref, c_double
from math import cos, sin
from typing import Final, NamedTuple

from pypdfium2 import PdfTextPage
from pypdfium2 import raw as pdfium

_CODES: Final = frozenset(map(chr, (*range(2), *range(3, 32), 127)))
"""Signs that are no letters, of fonts without Unicode. The second stands for a hyphen at the end of a line."""
_SPACED: Final = re.compile(r"[0-9A-Za-z\u00c0-\u052f.,;:!?'-]")
"""Signs of scripts that part words by spaces."""
_DRAWN_LATELY: Final = 3
_SAME_PLACE: Final = 0.25
_DISTANT: Final = 3.5
"""Heights between the middles of letters that are no neighbours."""
_DIAGONAL: Final = 0.2
"""Near a slant of 45 degrees, boxes along the edges do not give a letter's width."""


class Box(NamedTuple):  # made for each run of a book: a frozen dataclass takes three times as long
    """A box on a page, in points."""

    left: float
    bottom: float
    right: float
    top: float


class Letter(NamedTuple):
    """A letter: its box on the page, and its place in its line, whose slant is in radians, in points.

    ``start`` and ``end`` lie along the line, ``base`` is its distance from the page's corner. What stands for a space
    or the end of a line has no box; PDFium has ``made`` it where the file has none.
    """

    sign: str
    box: Box | None = None
    slant: float = 0.0
    size: float = 0.0
    start: float = 0.0
    end: float = 0.0
    base: float = 0.0
    height: float = 0.0
    made: bool = False


def drawn(page: PdfTextPage, *, codes: bool) -> Iterator[Letter]:
    """Yield the letters of a page and the spaces between them; each drawn letter once."""
    handle, look = page.raw, _Look()
    lately, last, ends_word = deque[tuple[str, Box]](maxlen=_DRAWN_LATELY), Letter(" "), True
    for index in range(page.count_chars()):
        code = pdfium.FPDFText_GetUnicode(handle, index)
        if code == 0 and not codes:
            continue
        sign = chr(code) if code <= sys.maxunicode else "\ufffd"
        if sign in _CODES or sign.isspace():
            ends_word = True
            yield Letter(sign, made=pdfium.FPDFText_IsGenerated(handle, index) == 1)
            continue
        box = look.box(handle, index)
        size = max(box.top - box.bottom, box.right - box.left)
        for other, one in lately:
            # The letters of a ligature have one and the same box; one that is drawn again lies on the other
            if other == sign and one != box and _apart(box, one) < _SAME_PLACE * size:
                common = min(one.right, box.right) - max(one.left, box.left)
                if 2 * common >= min(one.right - one.left, box.right - box.left):
                    break
        else:
            letter = look.letter(handle, index, sign, box) if _SPACED.match(sign) else Letter(sign, box)
            if not ends_word:
                before = lately[-1][1]
                # A dot is smaller than its line, and a letter that its font does not draw has only a width
                width = max(letter.end - letter.start, last.end - last.start)
                if _apart(box, before) > _DISTANT * max(size, letter.height / 2, width / 2):
                    yield Letter(" " if box.bottom < before.top and before.bottom < box.top else "\n")
            yield letter
            ends_word, last = False, letter
            lately.append((sign, box))


class _Look:
    """Where PDFium writes the place of a letter: made once for a page, not for each of its letters."""

    def __init__(self) -> None:
        self._room = pdfium.FS_RECTF()
        self._edges = left, right, bottom, top = c_double(), c_double(), c_double(), c_double()
        self._into = byref(left), byref(right), byref(bottom), byref(top)

    def box(self, page: pdfium.FPDF_TEXTPAGE, index: int) -> Box:
        """Return the box of a letter as it is drawn."""
        left, right, bottom, top = self._edges
        pdfium.FPDFText_GetCharBox(page, index, *self._into)
        return Box(left.value, bottom.value, right.value, top.value)

    def letter(self, page: pdfium.FPDF_TEXTPAGE, index: int, sign: str, box: Box) -> Letter:
        """Return a letter with its place in its line. Others need none: no gap parts their words."""
        slant, size = pdfium.FPDFText_GetCharAngle(page, index), pdfium.FPDFText_GetFontSize(page, index)
        room, (x, y, *_) = self._room, self._edges
        pdfium.FPDFText_GetLooseCharBox(page, index, room)
        pdfium.FPDFText_GetCharOrigin(page, index, *self._into[:2])
        left, right, width, height = room.left, room.right, room.right - room.left, room.top - room.bottom
        if not slant:
            return Letter(sign, box, slant, size, left, right, y.value, height)
        across, up = cos(slant), -sin(slant)
        # The box lies along the page's edges, around a letter that lies along its line
        level, steep = abs(across), abs(up)
        if abs(level - steep) > _DIAGONAL:
            scale = level * level - steep * steep
            width, height = (level * width - steep * height) / scale, (level * height - steep * width) / scale
        else:
            width, height = (part * (width + height) / (level + steep) for part in (1 / 3, 2 / 3))
        # The letters of a ligature have one origin and boxes of their own
        middle = ((left + right) * across + (room.bottom + room.top) * up) / 2
        base = y.value * across - x.value * up
        return Letter(sign, box, slant, size, middle - width / 2, middle + width / 2, base, height)


def _apart(one: Box, other: Box) -> float:
    """Return the distance between the middles of two letters, along the page's nearer edge."""
    across = abs(one.left + one.right - other.left - other.right)
    return max(across, abs(one.bottom + one.top - other.bottom - other.top)) / 2
