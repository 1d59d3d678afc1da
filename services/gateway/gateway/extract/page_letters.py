"""The text of a PDF's page letter by letter, where PDFium alone joins, parts or turns words.

PDFium looks at one gap between letters at a time, and along the edges of the page. Here a gap is measured along its
line, and weighed against those beside it: letters that all stand apart are one word, a wide gap among narrow ones parts
two.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import Final
from unicodedata import category

from pypdfium2 import PdfTextPage
from pypdfium2 import raw as pdfium

from gateway.extract.page_places import Box, Letter, drawn

_BEGINNING: Final = re.compile(r"\s([^\w\s\0-\u02ff])")
_BEFORE_MARK: Final = 16
"""Letters after which the mark of one before them may come."""
_LEFTWARD: Final = "[\u0590-\u065f\u066a-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
LEFTWARDS: Final = re.compile(f"{_LEFTWARD}(?: *{_LEFTWARD})+")
"""Letters that are read from right to left; the digits among them are not."""
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


_SPACE: Final = Letter(" ")


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
    letters = list(_parted(_attached(drawn(page, codes=codes))))
    signs = [letter.sign for letter in letters]
    for run in LEFTWARDS.finditer("".join(signs)):
        first, last = letters[run.start()].box, letters[run.end() - 1].box
        if first and last and first.left + first.right < 2 * last.left:
            signs[run.start() : run.end()] = reversed(run[0])
    return "".join(signs).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def marks_stand_apart(text: str) -> bool:
    """Return whether a vowel sign or another mark, which belongs to a letter, begins a word."""
    return any(_is_mark(found[1]) for found in _BEGINNING.finditer(text))


def _is_mark(sign: str) -> bool:
    return sign > "\u02ff" and category(sign)[0] == "M" and not LEFTWARDS.match(2 * sign)


def _attached(letters: Iterable[Letter]) -> list[Letter]:
    """Return the letters, each mark that PDFium sets apart behind the letter over or under which it stands.

    Programs draw the marks of Thai and Indic scripts beside their letters, or after the letters that follow them.
    """
    placed, is_apart = list[Letter](), False
    for letter in letters:
        is_mark = _is_mark(letter.sign)
        if letter.box is not None and (is_mark or is_apart):
            end = len(placed)
            while end and placed[end - 1].made:
                end -= 1
            bases = [at for at in range(max(0, end - _BEFORE_MARK), end) if not _is_mark(placed[at].sign)]
            if is_mark:
                at = next((at for at in reversed(bases) if _is_over(letter.box, placed[at].box)), None)
                if at is not None:
                    is_apart = is_apart or end < len(placed) or at != bases[-1]
                    del placed[end:]
                    behind = next((one for one in range(at + 1, end) if not _is_mark(placed[one].sign)), end)
                    placed.insert(behind, letter)
                    continue
            elif bases and _follows(letter.box, placed[bases[-1]].box):
                del placed[end:]
            is_apart = False
        placed.append(letter)
    return placed


def _is_over(mark: Box, letter: Box | None) -> bool:
    """Return whether a mark stands over or under a letter."""
    if letter is None or not letter.left <= (mark.left + mark.right) / 2 <= letter.right:
        return False
    height = letter.top - letter.bottom
    return letter.bottom - height < mark.bottom and mark.top < letter.top + height


def _follows(letter: Box, before: Box | None) -> bool:
    """Return whether a letter stands close behind another on its line."""
    if before is None or letter.bottom > before.top or letter.top < before.bottom:
        return False
    return abs(letter.left - before.right) < _LONE_GAP * (before.top - before.bottom)


def _parted(letters: Sequence[Letter]) -> Iterator[Letter]:
    """Yield the letters with a space at each gap between words, and without what PDFium made of other gaps."""
    solid, made = list[Letter](), dict[int, list[Letter]]()
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


def _is_break(one: Letter, other: Letter, gap: float | None, beside: Sequence[float]) -> bool:
    """Return whether another word begins where PDFium sees none."""
    if gap is None or not other.sign.isalnum():
        is_turned = abs(one.slant - other.slant) > _TURNED
        return is_turned and one.size != other.size and one.box is not None is not other.box
    return gap > max(_GAP, _WIDER * max(beside)) if beside else gap > _LONE_GAP


def _is_inside(one: Letter, other: Letter, gap: float, beside: Sequence[float]) -> bool:
    """Return whether a word goes on where PDFium ends it."""
    is_number = one.sign + other.sign in _IN_NUMBERS
    if abs(gap) < _LEAST_GAP and (one.slant or is_number) and all(near > gap - _LEAST_GAP for near in beside):
        return True
    return bool(beside) and min(beside) > _LEAST_GAP < gap < min(_MOST_GAP, _ALIKE * max(beside))


def _gap(one: Letter, other: Letter) -> float | None:
    """Return the gap between two letters of a line in heights of the line; None where it parts no words."""
    height = min(one.height, other.height)
    if height <= 0 or abs(one.slant - other.slant) > _TURNED or abs(one.base - other.base) > _SAME_BASE * height:
        return None
    return (other.start - one.end) / height
