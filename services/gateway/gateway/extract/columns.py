"""Two columns of prose that a PDF writes line by line across both: the left one is read first, then the right one.

A table of two columns looks alike. Columns of prose are told by their lines: most are as long as their column is wide.
"""

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from pypdfium2 import PdfTextPage

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
