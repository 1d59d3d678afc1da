"""The text of a PDF's page in the order of reading, from the letters and boxes that PDFium finds.

Two columns of prose that a PDF writes line by line across both: the left one is read first, then the right one. A table
of two columns looks alike. Columns of prose are told by their lines: most are as long as their column is wide.
"""

import re
from ctypes import byref, c_double
from itertools import pairwise
from statistics import median
from typing import Final

from pypdfium2 import PdfTextPage
from pypdfium2 import raw as pdfium

from gateway.extract.page_letters import LEFTWARDS, by_letters, is_even, marks_stand_apart
from gateway.extract.page_places import Box

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
_FEW: Final = 400
"""Letters of a label or a drawing: it costs little to read each."""
_TORN = re.compile(r" (?<=[^\W\d_]{2} )[^\W\d_]\b(?! [^\W\d_]\b)")
"""A single letter behind a word, as where PDFium tears words whose letters stand apart (``Nort h``)."""
_OFTEN: Final = 0.01
"""Torn words for each letter of a page."""
_DOUBLED = re.compile(r"(?:([^\W\d_])\1(?!\1)){3}")


def page_text(page: PdfTextPage, text: str, *, by_letter: bool = False) -> str:
    """Return a page's text, of which PDFium makes ``text``; columns written line by line are read one after the other.

    ``by_letter``: also the letters that have no Unicode, as their codes.
    """
    is_short = len(text) <= _FEW
    runs = [] if is_short and text.count("\n") < _LEAST_LINES - 1 else _runs(page)
    gutter = _gutter(runs)
    if gutter is None:
        is_odd = (
            by_letter
            or (is_short and not is_even(page, text))
            or len(_TORN.findall(text)) > _OFTEN * len(text)
            or any(run.top - run.bottom > _TALL and _stands(page, run) for run in runs)
            or _DOUBLED.search(text)
            or (not text.isascii() and (LEFTWARDS.search(text) or marks_stand_apart(text)))
        )
        return by_letters(page, codes=by_letter) if is_odd else text
    inside = [run for run in runs if run.right <= gutter or run.left >= gutter]
    crossing = [run for run in runs if run not in inside]
    middle = median(run.top for run in inside)
    top = min((run.bottom for run in crossing if run.bottom > middle), default=_FAR)
    bottom = max((run.top for run in crossing if run.top < middle), default=-_FAR)
    columns = [(-_FAR, bottom, gutter, top), (gutter, bottom, _FAR, top)]
    parts = [(-_FAR, top, _FAR, _FAR), *columns, (-_FAR, -_FAR, _FAR, bottom)]
    return "\r\n".join(filter(None, (page.get_text_bounded(*part) for part in parts if part[1] < part[3])))


def _runs(page: PdfTextPage) -> list[Box]:
    """Return the boxes of what a page shows in one font on one line; none of a page with very many."""
    count = page.count_rects()
    left, top, right, bottom = edges = c_double(), c_double(), c_double(), c_double()
    into, runs = [byref(edge) for edge in edges], list[Box]()
    for number in range(count if count <= _MOST_RUNS else 0):
        pdfium.FPDFText_GetRect(page.raw, number, *into)
        runs.append(Box(left.value, bottom.value, right.value, top.value))
    return runs


def _stands(page: PdfTextPage, run: Box) -> bool:
    """Return whether the letters of a run stand one above the other, and are not turned."""
    width, height = run.right - run.left, run.top - run.bottom
    if height < _STANDING * width:
        return False
    middle = (run.left + width / 2, run.bottom + height / 2)
    letter = pdfium.FPDFText_GetCharIndexAtPos(page.raw, *middle, width, height)
    return letter >= 0 and abs(pdfium.FPDFText_GetCharAngle(page.raw, letter)) < _UPRIGHT


def _gutter(runs: list[Box]) -> float | None:
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
