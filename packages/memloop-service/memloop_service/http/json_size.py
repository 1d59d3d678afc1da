"""Looks at a JSON body before it is parsed: how much it would grow, and whether it has integers that no store keeps.

Each object, list, key and element costs 50 to 200 bytes in memory, though ``{},`` has three in the body. So brackets,
braces, commas and colons are counted first, at the speed of C. Those in a string cost nothing: a body that seems to
have too many is counted again without its strings.

All of it goes over windows of 256 KiB: they fit into the processor's cache, the count ends with the first excess, and
the event loop gets the interpreter between two of them.
"""

import re
from collections.abc import Iterator
from typing import Final

from memloop.wire.errors import Unprocessable

MOST_PARTS: Final = 300_000
"""Values of one body: as many as the tokens that an embeddings request may have."""
_MOST_QUOTES: Final = 4 * MOST_PARTS
_BYTES_OF_MOST_PARTS: Final = 3 * MOST_PARTS // 2
"""A shorter body cannot hold so many: ``[],`` is the densest JSON, two parts in three bytes."""
_WINDOW: Final = 1 << 18
_PARTS: Final = b"[{,:"
_INTEGERS: Final = range(-(2**63), 2**63)
_MOST_DIGITS: Final = 20
_LEAST_DIGITS: Final = 19
"""An integer beyond 64 bits has as many."""
_STEP: Final = 6
"""Nineteen digits in a row cover three bytes that are six apart, wherever they begin."""
_ZEROS: Final = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))
"""Translates every digit to a zero and every other byte to a space."""
_NUMBERS: Final = bytes(
    ord("0") if byte in b"0123456789" else ord("e") if byte in b"eE" else ord(" ") for byte in range(256)
)
"""Translates every digit to a zero, the sign of an exponent to ``e`` and every other byte to a space."""
_ODD: Final = (b"0e00", b"0" * _LEAST_DIGITS)
_NO_NUMBERS: Final = (b"NaN", b"Infinity")
_RUN: Final = re.compile(rb"[0-9]++")
_INTEGER: Final = re.compile(rb"(?<![0-9.eE+-])-?[0-9]++(?![.eE])")


def refuse_too_many_parts(raw: bytes) -> None:
    """Raises Unprocessable (422) for a body that would take hundreds of megabytes as objects."""
    if len(raw) > _BYTES_OF_MOST_PARTS and _seems_to_have_too_many(raw) and _has_too_many(raw):
        message = f"The body has more than {MOST_PARTS} values. Send several requests."
        raise Unprocessable(message, code="too_many_values")


def refuse_lost_digits(raw: bytes) -> None:
    """Raises Unprocessable (422) for an integer of more than 64 bits in a JSON text: no store keeps it exactly."""
    if not _has_many_digits(raw):
        return
    plain = b"".join(_outside_strings(raw))
    for at in _runs_of_digits(plain):
        found = _INTEGER.match(plain, at - plain.endswith(b"-", 0, at))
        if found is not None and is_lost(found[0].decode()):
            raise Unprocessable("An integer in the body takes more than 64 bits.", code="number_out_of_range")


def has_odd_numbers(raw: bytes) -> bool:
    """Return whether the text may hold a number on which parsers differ: beyond 64 bits, infinite, or not one."""
    for at in range(0, len(raw), _WINDOW):
        window = raw[at : at + _WINDOW + _LEAST_DIGITS]
        numbers = window.translate(_NUMBERS, b"+")
        if any(odd in numbers for odd in _ODD) or any(word in window for word in _NO_NUMBERS):
            return True
    return False


def is_lost(digits: str) -> bool:
    """Return whether an integer of these digits takes more than 64 bits."""
    return len(digits) > _MOST_DIGITS or int(digits) not in _INTEGERS


def _seems_to_have_too_many(raw: bytes) -> bool:
    parts = 0
    for at in range(0, len(raw), _WINDOW):
        window = raw[at : at + _WINDOW]
        parts += len(window) - len(window.translate(None, _PARTS))
        if parts > MOST_PARTS:
            return True
    return False


def _has_too_many(raw: bytes) -> bool:
    """Return whether there are too many outside of strings, or too many strings to look."""
    parts = quotes = 0
    for window in _windows(raw):
        quotes += window.count(b'"')
        if quotes > _MOST_QUOTES:
            return True
    for plain in _outside_strings(raw):
        parts += sum(map(plain.count, (b"[", b"{", b",", b":")))
        if parts > MOST_PARTS:
            return True
    return False


def _outside_strings(raw: bytes) -> Iterator[bytes]:
    """Yield the JSON text in pieces, with a space for each of its strings."""
    inside = False
    for window in _windows(raw):
        pieces = window.split(b'"')
        yield b" ".join([b"", *pieces[1::2]] if inside else pieces[::2])
        inside ^= len(pieces) % 2 == 0


def _windows(raw: bytes) -> Iterator[bytes]:
    r"""Yield the text in pieces, without its escapes ``\\`` and ``\"``."""
    at = 0
    while window := raw[at : at + _WINDOW]:
        if (len(window) - len(window.rstrip(b"\\"))) % 2:  # it ends in the middle of an escape
            window = raw[at : at + _WINDOW + 1]
        at += len(window)
        yield window.replace(rb"\\", b"").replace(rb"\"", b"")


def _has_many_digits(raw: bytes) -> bool:
    for at in range(0, len(raw), _WINDOW):
        window = raw[at : at + _WINDOW + _LEAST_DIGITS]
        if b"000" in window[::_STEP].translate(_ZEROS) and b"0" * _LEAST_DIGITS in window.translate(_ZEROS):
            return True
    return False


def _runs_of_digits(plain: bytes) -> Iterator[int]:
    """Yield where each run of many digits begins."""
    zeros, run = plain.translate(_ZEROS), b"0" * _LEAST_DIGITS
    at = zeros.find(run)
    while at >= 0:
        yield at
        found = _RUN.match(plain, at)
        at = zeros.find(run, found.end() if found is not None else at + 1)
