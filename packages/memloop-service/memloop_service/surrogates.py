r"""Makes JSON bodies well-formed at the edge: a lone surrogate escape such as ``\ud800`` becomes ``\ufffd``.

JSON may hold half of a surrogate pair, UTF-8 may not. Such a text would fail wherever it is first written: in a
response, a store, a log. Source: RFC 8259, section 8.2.

It goes over windows of 64 KiB: the event loop gets the interpreter between two of them. A pattern over 64 MiB of
escapes would hold it for three seconds.
"""

import re
from collections.abc import Iterator
from typing import Final

_HIGH: Final = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!%b)|(?<!%b\\u[dD])[c-fC-F][0-9a-fA-F]{2})" % (_LOW, _HIGH)
)
_IS_HIGH: Final = re.compile(_HIGH)
_HIDDEN: Final = b"\0\0"
_ESCAPE: Final = 6
WINDOW: Final = 1 << 16


def without_lone_surrogates(body: bytes, *, window: int = WINDOW) -> bytes:
    """Replace each lone surrogate in the JSON text; all other bytes stay.

    A body with a NUL byte is returned unchanged: no JSON text has one. ``window`` is the bytes looked at in one step.
    """
    if b"\\" not in body or (b"\\ud" not in body and b"\\uD" not in body) or b"\0" in body:
        return body
    return b"".join(
        _LONE.sub(rb"\\ufffd", piece).replace(_HIDDEN, rb"\\") for piece in _whole_pairs(_masked(body, window))
    )


def _masked(body: bytes, window: int) -> Iterator[bytes]:
    """Yield the text in windows with its escaped backslashes masked: every backslash left begins an escape."""
    at = 0
    while piece := body[at : at + window]:
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:  # it ends in the middle of an escape
            piece = body[at : at + window + 1]
        at += len(piece)
        yield piece.replace(rb"\\", _HIDDEN)


def _whole_pairs(windows: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same bytes, cut so that no escape and no pair of them is cut through."""
    left = b""
    for window in windows:
        piece = left + window
        end = _end_of_pairs(piece)
        yield piece[:end]
        left = piece[end:]
    yield left


def _end_of_pairs(piece: bytes) -> int:
    """Return where the last escapes begin that may go on after the piece, else its length."""
    last = piece.find(b"\\", max(0, len(piece) - 2 * _ESCAPE + 1))
    if last < 0:
        return len(piece)
    before = max(0, last - _ESCAPE)
    return before if _IS_HIGH.match(piece, before) else last
