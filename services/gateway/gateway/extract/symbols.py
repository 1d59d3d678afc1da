"""What Office shows by its form: signs of the fonts Symbol and Wingdings, fractions and powers.

Each is written in one line, as ``1/2`` and ``10^6``, which without it would be 12 and 106.
"""

import re
from collections.abc import Callable
from typing import Final

from gateway.extract.package import Element

_LOW: Final = 0xFF
"""Word adds F000 to a code of such a font."""
_SYMBOL: Final = dict(
    [
        *enumerate("ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ", start=0x41),
        *enumerate("αβχδεφγηιϕκλμνοπθρστυϖωξψζ", start=0x61),
        *enumerate("0123456789", start=0x30),
        *enumerate("€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…", start=0xA0),
        *{0x2B: "+", 0x2D: "−", 0x3C: "<", 0x3D: "=", 0x3E: ">", 0x40: "≅", 0x7E: "∼"}.items(),
        *{0xCE: "∈", 0xD6: "√", 0xD7: "⋅", 0xD9: "∧", 0xDA: "∨", 0xDE: "⇒", 0xE5: "∑", 0xF2: "∫"}.items(),
    ]
)
_WINGDINGS: Final = {0x6F: "☐", 0xA8: "☐", 0xFD: "☒", 0xFE: "☒", 0xFB: "✗", 0xFC: "✓", 0xE0: "→", 0xDF: "←"}
_WINGDINGS_2: Final = {0xA3: "☐", 0x2A: "☐", 0x52: "☒", 0x53: "☒", 0x54: "☒", 0x4F: "✗", 0x50: "✓"}
_FONTS: Final = {"Symbol": _SYMBOL, "Wingdings": _WINGDINGS, "Wingdings 2": _WINGDINGS_2}
RAISED: Final = "\1"
"""Stands before raised text, and is no letter of XML."""
_POWER = re.compile(f"(?<=\\d){RAISED}(?=[-\u2212]?\\d)")
_PARTS: Final = {
    "f": (("", "num"), ("/", "den")),
    "sSup": (("", "e"), ("^", "sup")),
    "sSub": (("", "e"), ("_", "sub")),
    "sSubSup": (("", "e"), ("_", "sub"), ("^", "sup")),
    "rad": (("", "deg"), ("√", "e")),
    "nary": (("_", "sub"), ("^", "sup"), (" ", "e")),
}
FORMULAS: Final = frozenset((*_PARTS, "d"))
_INTEGRAL: Final = "∫"
"""Stands where no other sign is named."""


def sign(font: str, code: str) -> str:
    """Return the sign that a font has for a hexadecimal code; empty for one that is unknown."""
    try:
        return _FONTS.get(font, {}).get(int(code, 16) & _LOW, "")
    except ValueError:
        return ""


def in_line(element: Element, text: Callable[[Element], str]) -> str | None:
    """Return a part of a formula as it is typed, as ``1/2``, ``x^2`` and ``√2``; None for another element."""
    if element.tag == "d":
        begin, end = _named(element, "dPr/begChr", "("), _named(element, "dPr/endChr", ")")
        return f"{begin}{', '.join(map(text, element.findall('e')))}{end}"
    line = _named(element, "naryPr/chr", _INTEGRAL) if element.tag == "nary" else ""
    for before, name in _PARTS.get(element.tag, ()):
        part = element.find(name)
        shown = "" if part is None else text(part)
        # One sign, one word, or what has brackets already
        is_single = (
            len(shown) <= 1
            or shown.isalnum()
            or before == " "
            or (shown[0] == "(" and shown.find(")") == len(shown) - 1)
        )
        line += before + (shown if is_single else f"({shown})") if shown else ""
    return line if element.tag in _PARTS else None


def _named(element: Element, path: str, default: str) -> str:
    found = element.find(path)
    return default if found is None else found.get("val", default)


def is_raised(run: Element) -> bool:
    """Return whether a run of text is raised, as powers and numbers of notes are."""
    raised = run.find("rPr/vertAlign")
    return raised is not None and raised.get("val") == "superscript"


def with_powers(text: str) -> str:
    """Return a text in which what is raised behind a number is its power."""
    return _POWER.sub("^", text).replace(RAISED, "")
