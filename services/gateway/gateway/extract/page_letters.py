"""The text of a PDF's page letter by letter, where PDFium alone joins, parts or turns words.

PDFium looks at one gap between letters at a time, and along the edges of the page. Here a gap is measured along its
line, and weighed against those beside it: letters that all stand apart are one word, a wide gap among narrow ones parts
two.
"""

import re
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from ctypes import byref, c_double
from itertools import pairwise
from math import cos, inf, sin
from typing import Final, NamedTuple

from pypdfium2 import PdfTextPage
from pypdfium2 import raw as pdfium

_LEFTWARD: Final = "[\u0590-\u065f\u066a-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
LEFTWARDS: Final = re.compile(f"{_LEFTWARD}(?: *{_LEFTWARD})+")
"""Letters that are read from right to left; the digits among them are not."""
_CODES: Final = frozenset(map(chr, (*range(2), *range(3, 32), 127)))
"""Signs that are no letters, of fonts without Unicode. The second stands for a hyphen at the end of a line."""
_SPACED: Final = re.compile(r"[0-9A-Za-z\u00c0-\u052f.,;:!?'-]")
"""Signs of scripts that part words by spaces."""
_DRAWN_LATELY: Final = 3
_SAME_PLACE: Final = 0.25
_DISTANT: Final = 3.5
"""Heights between the middles of letters that are no neighbours."""
_GAP: Final = 0.15
"""Heights of a line between two letters that may part words."""
_LONE_GAP: Final = 0.25
_WIDER: Final = 2.0
"""Times the gaps beside it that a gap between words is wide."""
_LEAST_GAP: Final = 0.04
_MOST_GAP: Final = 0.3
"""Heights of a line between the letters of a word that stand apart."""
_KERNED: Final = 0.1
"""Heights of a line by which the letters of a word are pushed into one another."""
_SAME_BASE: Final = 0.25
_ALIKE: Final = 1.3
_NEAR: Final = 1.5
"""Heights of a line between the words of one line."""
_IN_NUMBERS: Final = frozenset(pair for digit in "0123456789" for pair in (f"{digit}.", f".{digit}"))
_TURNED: Final = 0.02
"""Radians by which the slant of a line does not vary."""
_DIAGONAL: Final = 0.2
"""Near a slant of 45 degrees, boxes along the edges do not give a letter's width."""


class Box(NamedTuple):  # made for each run of a book: a frozen dataclass takes three times as long
    """A box on a page, in points."""

    left: float
    bottom: float
    right: float
    top: float


class _Letter(NamedTuple):
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


_SPACE: Final = _Letter(" ")


def is_even(page: PdfTextPage, text: str) -> bool:
    """Return whether the words of PDFium's ``text`` are right at a glance, and need no reading letter by letter.

    Each word is level and its letters touch, and no two words do. Most short texts are so; a glance at one box for
    each letter costs a third of reading them.
    """
    if not text.isascii() or len(text) != page.count_chars():
        return False
    handle, room, begins, end, bottom, height = page.raw, pdfium.FS_RECTF(), True, -inf, 0.0, 0.0
    for index, sign in enumerate(text):
        if sign.isspace():
            begins = True
            continue
        pdfium.FPDFText_GetLooseCharBox(handle, index, room)
        gap = room.left - end
        if begins:
            height = room.top - room.bottom
            if abs(gap) < _LEAST_GAP * height or pdfium.FPDFText_GetCharAngle(handle, index):
                return False
        elif not (room.bottom == bottom and -_KERNED * height < gap < _LEAST_GAP * height):
            return False
        begins, end, bottom = False, room.right, room.bottom
    return True


def by_letters(page: PdfTextPage, *, codes: bool) -> str:
    """Return a page's text; ``codes``: with signs for letters that have no Unicode.

    No letter is drawn again beside itself, distant ones are parted, and Arabic and Hebrew go from right to left: PDFium
    turns their letters round even where the file has them in the order of reading.
    """
    letters = list(_parted(list(_drawn(page, codes=codes))))
    signs = [letter.sign for letter in letters]
    for run in LEFTWARDS.finditer("".join(signs)):
        first, last = letters[run.start()].box, letters[run.end() - 1].box
        if first and last and first.left + first.right < 2 * last.left:
            signs[run.start() : run.end()] = reversed(run[0])
    return "".join(signs).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _drawn(page: PdfTextPage, *, codes: bool) -> Iterator[_Letter]:
    """Yield the letters of a page and the spaces between them; each drawn letter once."""
    handle, look = page.raw, _Look()
    lately, last, ends_word = deque[tuple[str, Box]](maxlen=_DRAWN_LATELY), _SPACE, True
    for index in range(page.count_chars()):
        code = pdfium.FPDFText_GetUnicode(handle, index)
        if code == 0 and not codes:
            continue
        sign = chr(code) if code <= sys.maxunicode else "\ufffd"
        if sign in _CODES or sign.isspace():
            ends_word = True
            yield _Letter(sign, made=pdfium.FPDFText_IsGenerated(handle, index) == 1)
            continue
        box = look.box(handle, index)
        size = max(box.top - box.bottom, box.right - box.left)
        for other, one in lately:
            # The letters of a ligature have one and the same box
            if other == sign and one != box and _apart(box, one) < _SAME_PLACE * size and _covers(one, box):
                break
        else:
            letter = look.letter(handle, index, sign, box) if _SPACED.match(sign) else _Letter(sign, box)
            if not ends_word:
                before = lately[-1][1]
                # A dot is smaller than its line, and a letter that its font does not draw has only a width
                width = max(letter.end - letter.start, last.end - last.start)
                if _apart(box, before) > _DISTANT * max(size, letter.height / 2, width / 2):
                    yield _Letter(" " if box.bottom < before.top and before.bottom < box.top else "\n")
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

    def letter(self, page: pdfium.FPDF_TEXTPAGE, index: int, sign: str, box: Box) -> _Letter:
        """Return a letter with its place in its line. Others need none: no gap parts their words."""
        slant, size = pdfium.FPDFText_GetCharAngle(page, index), pdfium.FPDFText_GetFontSize(page, index)
        room, (x, y, *_) = self._room, self._edges
        pdfium.FPDFText_GetLooseCharBox(page, index, room)
        pdfium.FPDFText_GetCharOrigin(page, index, *self._into[:2])
        left, right, width, height = room.left, room.right, room.right - room.left, room.top - room.bottom
        if not slant:
            return _Letter(sign, box, slant, size, left, right, y.value, height)
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
        return _Letter(sign, box, slant, size, middle - width / 2, middle + width / 2, base, height)


def _apart(one: Box, other: Box) -> float:
    """Return the distance between the middles of two letters, along the page's nearer edge."""
    across = abs(one.left + one.right - other.left - other.right)
    return max(across, abs(one.bottom + one.top - other.bottom - other.top)) / 2


def _covers(one: Box, other: Box) -> bool:
    """Return whether a letter lies on another, and not beside it."""
    common = min(one.right, other.right) - max(one.left, other.left)
    return 2 * common >= min(one.right - one.left, other.right - other.left)


def _parted(letters: Sequence[_Letter]) -> Iterator[_Letter]:
    """Yield the letters with a space at each gap between words, and without what PDFium made of other gaps."""
    solid, made = list[_Letter](), dict[int, list[_Letter]]()
    for letter in letters:
        if letter.made:
            made.setdefault(len(solid) - 1, []).append(letter)
        else:
            solid.append(letter)
    yield from made.get(-1, ())
    gaps = [_gap(one, other) for one, other in pairwise(solid)]
    inside = [None if at in made else gap for at, gap in enumerate(gaps)]
    for at, (letter, other, gap) in enumerate(zip(solid, solid[1:], gaps, strict=False)):
        yield letter
        if at not in made and gap is not None and gap <= _GAP:
            continue
        beside = [near for near in (*inside[max(at - 1, 0) : at], *inside[at + 1 : at + 2]) if near is not None]
        if at not in made:
            yield from [_SPACE] if _is_break(letter, other, gap, beside) else ()
        elif gap is None or not _is_inside(letter, other, gap, beside):
            # PDFium ends the line where a slanted one rises or falls
            yield from [_SPACE] if letter.slant and gap is not None and 0 < gap < _NEAR else made[at]
    yield from solid[-1:]
    yield from made.get(len(solid) - 1, ()) if solid else ()


def _is_break(one: _Letter, other: _Letter, gap: float | None, beside: Sequence[float]) -> bool:
    """Return whether another word begins where PDFium sees none."""
    if gap is None or not other.sign.isalnum():
        return one.size != other.size and _is_turned(one, other) and one.box is not None is not other.box
    return gap > max(_GAP, _WIDER * max(beside)) if beside else gap > _LONE_GAP


def _is_inside(one: _Letter, other: _Letter, gap: float, beside: Sequence[float]) -> bool:
    """Return whether a word goes on where PDFium ends it."""
    is_number = one.sign + other.sign in _IN_NUMBERS
    if abs(gap) < _LEAST_GAP and (one.slant or is_number) and all(near > gap - _LEAST_GAP for near in beside):
        return True
    return bool(beside) and min(beside) > _LEAST_GAP < gap < min(_MOST_GAP, _ALIKE * max(beside))


def _gap(one: _Letter, other: _Letter) -> float | None:
    """Return the gap between two letters of a line in heights of the line; None where it parts no words."""
    height = min(one.height, other.height)
    if height <= 0 or abs(one.slant - other.slant) > _TURNED or abs(one.base - other.base) > _SAME_BASE * height:
        return None
    return (other.start - one.end) / height


def _is_turned(one: _Letter, other: _Letter) -> bool:
    """Return whether the line of two letters turns between them."""
    return abs(one.slant - other.slant) > _TURNED
