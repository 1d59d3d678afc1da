"""The text of a PDF's page in the order of reading, from the letters and boxes that PDFium finds.

Two columns of prose that a PDF writes line by line across both: the left one is read first, then the right one. A table
of two columns looks alike. Columns of prose are told by their lines: most are as long as their column is wide.
"""

import re
import sys
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from pypdfium2 import PdfTextPage
from pypdfium2 import raw as pdfium

_LEAST_LINES: Final = 6
"""In each column."""
_FULL_LINE: Final = 0.75
_MOSTLY: Final = 0.7
_FAR: Final = 1e6
_MOST_RUNS: Final = 2_000
_STANDING: Final = 8
"""Times its width that a run is high whose letters stand one above the other."""
_TALL: Final = 40.0
"""Points that few letters have."""
_UPRIGHT: Final = 0.1
"""Radians."""
_DOUBLED = re.compile(r"(?:([^\W\d_])\1){3}")
_LEFTWARD: Final = "[\u0590-\u065f\u066a-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
_LEFTWARDS = re.compile(f"{_LEFTWARD}(?: *{_LEFTWARD})+")
"""Letters that are read from right to left; the digits among them are not."""
_DRAWN_LATELY: Final = 3
_SAME_PLACE: Final = 0.25
_DISTANT: Final = 3.5
"""Heights between the middles of letters that are no neighbours."""


class _Run(NamedTuple):  # made for each run of a book: a frozen dataclass takes three times as long
    left: float
    bottom: float
    right: float
    top: float


def page_text(page: PdfTextPage, *, by_letter: bool = False) -> str:
    """Return a page's text; columns that are written line by line are read one after the other.

    ``by_letter``: also the letters that have no Unicode, as their codes.
    """
    count = page.count_rects()
    runs = [_Run(*page.get_rect(number)) for number in range(count)] if count <= _MOST_RUNS else []
    gutter = _gutter(runs)
    if gutter is None:
        text = page.get_text_range()
        is_odd = (
            by_letter
            or any(run.top - run.bottom > _TALL and _stands(page, run) for run in runs)
            or _DOUBLED.search(text)
            or _LEFTWARDS.search(text)
        )
        return _by_boxes(page) if is_odd else text
    inside = [run for run in runs if run.right <= gutter or run.left >= gutter]
    crossing = [run for run in runs if run not in inside]
    middle = median(run.top for run in inside)
    top = min((run.bottom for run in crossing if run.bottom > middle), default=_FAR)
    bottom = max((run.top for run in crossing if run.top < middle), default=-_FAR)
    columns = [(-_FAR, bottom, gutter, top), (gutter, bottom, _FAR, top)]
    parts = [(-_FAR, top, _FAR, _FAR), *columns, (-_FAR, -_FAR, _FAR, bottom)]
    return "\r\n".join(filter(None, (page.get_text_bounded(*part) for part in parts if part[1] < part[3])))


def _stands(page: PdfTextPage, run: _Run) -> bool:
    """Return whether the letters of a run stand one above the other, and are not turned."""
    width, height = run.right - run.left, run.top - run.bottom
    if height < _STANDING * width:
        return False
    middle = (run.left + width / 2, run.bottom + height / 2)
    letter = pdfium.FPDFText_GetCharIndexAtPos(page, *middle, width, height)
    return letter >= 0 and abs(pdfium.FPDFText_GetCharAngle(page, letter)) < _UPRIGHT


def _by_boxes(page: PdfTextPage) -> str:
    """Return the text letter by letter.

    No letter is drawn again beside itself, distant ones are parted, and Arabic and Hebrew go from right to left: PDFium
    turns their letters round even where the file has them in the order of reading.
    """
    parts, drawn, places = list[str](), list[tuple[str, _Run]](), dict[int, _Run]()
    for index in range(page.count_chars()):
        code = pdfium.FPDFText_GetUnicode(page, index)
        letter = chr(code) if code <= sys.maxunicode else "\ufffd"
        if letter.isspace() or pdfium.FPDFText_IsGenerated(page, index) == 1:
            parts.append(letter)
            continue
        box = _Run(*page.get_charbox(index))
        size = max(box.top - box.bottom, box.right - box.left)
        lately = [(other, one, _apart(box, one)) for other, one in drawn[-_DRAWN_LATELY:]]
        # The letters of a ligature have one and the same box
        if any(other == letter and one != box and apart < _SAME_PLACE * size for other, one, apart in lately):
            continue
        if lately and lately[-1][2] > _DISTANT * size and not parts[-1].isspace():
            before = drawn[-1][1]
            parts.append(" " if box.bottom < before.top and before.bottom < box.top else "\n")
        parts.append(letter)
        drawn.append((letter, box))
        places[len(parts) - 1] = box
    for run in _LEFTWARDS.finditer("".join(parts)):
        first, last = places.get(run.start()), places.get(run.end() - 1)
        if first is not None and last is not None and first.left + first.right < 2 * last.left:
            parts[run.start() : run.end()] = reversed(run[0])
    return "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _apart(one: _Run, other: _Run) -> float:
    """Return the distance between the middles of two letters, along the page's nearer edge."""
    across = abs(one.left + one.right - other.left - other.right)
    return max(across, abs(one.bottom + one.top - other.bottom - other.top)) / 2


def _gutter(runs: list[_Run]) -> float | None:
    """Return where two columns of prose part, if their lines are written in turns."""
    if len(runs) < 2 * _LEAST_LINES:
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
