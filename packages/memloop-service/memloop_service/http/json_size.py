"""Looks at a JSON body before it is parsed: how much it would grow, and whether it has integers that no store keeps.

Each object, list, key and element costs 50 to 200 bytes in memory, though ``{},`` has three in the body. So brackets,
braces, commas and colons are counted first, at the speed of C. Those in a string cost nothing: a body that seems to
have too many is counted again without its strings.
"""

import re
from typing import Final

from memloop.wire.errors import Unprocessable

MOST_PARTS: Final = 300_000
"""Values of one body: as many as the tokens that an embeddings request may have."""
_BYTES_OF_MOST_PARTS: Final = 3 * MOST_PARTS // 2
"""A shorter body cannot hold so many: ``[],`` is the densest JSON, two parts in three bytes."""
_STRING: Final = re.compile(rb'"[^"]*+"')
_INTEGERS: Final = range(-(2**63), 2**63)
_MOST_DIGITS: Final = 20
_RUN: Final = re.compile(rb"[0-9]{19}")
"""An integer beyond 64 bits has at least 19 digits, which cover three bytes that are six apart."""
_ZEROS: Final = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))
"""Translates every digit to a zero and every other byte to a space: ten times as fast as to search for a run."""
_INTEGER: Final = re.compile(rb"(?<![0-9.eE+-])-?[0-9]{19,}+(?![.eE])")
_WINDOW: Final = 1 << 18
"""One call of ``re`` holds the interpreter; the event loop gets it between two windows."""


def refuse_too_many_parts(raw: bytes) -> None:
    """Raises Unprocessable (422) for a body that would take hundreds of megabytes as objects."""
    if len(raw) > _BYTES_OF_MOST_PARTS and _parts(raw) > MOST_PARTS and _parts(_without_strings(raw)) > MOST_PARTS:
        raise _too_many()


def refuse_lost_digits(raw: bytes) -> None:
    """Raises Unprocessable (422) for an integer of more than 64 bits in a JSON text: no store keeps it exactly."""
    if b"000" not in raw[::6].translate(_ZEROS):
        return
    if any(_RUN.search(raw, at, at + _WINDOW + _MOST_DIGITS) for at in range(0, len(raw), _WINDOW)):
        for integer in _INTEGER.finditer(_without_strings(raw)):
            if is_lost(integer[0].decode()):
                raise Unprocessable("An integer in the body takes more than 64 bits.", code="number_out_of_range")


def is_lost(digits: str) -> bool:
    """Return whether an integer of these digits takes more than 64 bits."""
    return len(digits) > _MOST_DIGITS or int(digits) not in _INTEGERS


def _parts(raw: bytes) -> int:
    return sum(map(raw.count, (b"[", b"{", b",", b":")))


def _without_strings(raw: bytes) -> bytes:
    """Return the JSON text with a space for each string. Raises Unprocessable for more strings than a body may have."""
    unescaped = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    if unescaped.count(b'"') > 4 * MOST_PARTS:  # each is a value or a key
        raise _too_many()
    return _STRING.sub(b" ", unescaped)


def _too_many() -> Unprocessable:
    message = f"The body has more than {MOST_PARTS} values. Send several requests."
    return Unprocessable(message, code="too_many_values")
