"""Numbers as lists and spreadsheets write them: digits, letters, Roman numerals."""

from typing import Final

_ROMAN: Final = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x")),
    *((9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_HIGHEST: Final = 100_000
_LETTERS: Final = 26
_MOST_LETTERS: Final = 9


def numeral(count: int, kind: str) -> str:
    """Return a number as ``kind`` writes one: ``a``, ``A``, ``i``, ``I`` or any digits."""
    if not 0 < count < _HIGHEST or kind not in ("a", "A", "i", "I"):
        return str(count)
    if kind in ("a", "A"):
        return chr(ord(kind) + (count - 1) % _LETTERS) * min(1 + (count - 1) // _LETTERS, _MOST_LETTERS)
    roman = ""
    for value, sign in _ROMAN:
        roman += sign * (count // value)
        count %= value
    return roman.upper() if kind == "I" else roman


def column(index: int) -> str:
    """Return the name of a spreadsheet's column, which are counted from 0: A to Z, then AA."""
    name, number = "", index + 1
    while number:
        number, rest = divmod(number - 1, _LETTERS)
        name = chr(ord("A") + rest) + name
    return name
