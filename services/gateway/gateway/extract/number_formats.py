"""Shows numbers as the cells of a spreadsheet show them, by the format codes of their styles (ECMA-376, 18.8.31).

Three things differ from the screen. A negative number has a minus where its cell has brackets or a colour, which mean
other things in a text. Dates that follow the viewer's country, or have names in another language than English, are ISO
dates. And a number that its format hides is shown.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from operator import eq, ge, gt, le, lt, ne
from types import MappingProxyType
from typing import Final

from gateway.extract.date_formats import date_shower
from gateway.extract.number_places import Show, Token, fraction_shower, number_shower, plain

_EAST_ASIAN: Final = (*range(27, 32), 36, *range(50, 59))
BUILT_IN: Final[Mapping[int, str]] = MappingProxyType(
    {1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??"}
    | {14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm"}
    | {21: "h:mm:ss", 22: "yyyy-mm-dd hh:mm", 32: "h:mm", 33: "h:mm:ss", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0"}
    | {37: "#,##0;-#,##0", 38: "#,##0;-#,##0", 39: "#,##0.00;-#,##0.00", 40: "#,##0.00;-#,##0.00", 48: "##0.0E+0"}
    | dict.fromkeys(_EAST_ASIAN, "yyyy-mm-dd")
)
"""Codes that a file need not write; those of the viewer's country (14, 22 and the East Asian ones) as ISO dates."""

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|(?P<blank>_).|\*.|\[(?P<bracket>[^\]]*)\]|(?P<general>General)'
    r"|(?P<half>AM/PM|A/P)|(?P<power>E[+-])|(?P<date>y+|m+|d+|h+|s+(?:\.0+)?|e+|g+|a{3,}|b{2,})|(?P<digit>[0#?])"
    r"|(?P<sign>[.,%;])|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_ELAPSED = re.compile("h+|m+|s+", re.IGNORECASE)
_CONDITION = re.compile(r"(<=|>=|<>|<|>|=)\s*(-?[\d.]+(?:E[+-]?\d+)?)", re.IGNORECASE)
_COMPARED: Final = MappingProxyType({"<": gt, "<=": ge, ">": lt, ">=": le, "=": eq, "<>": ne})
"""How the limit stands to a value that a condition holds for."""
_FRACTION = re.compile(r"(?:([0#?]+) *)?(?<![0#?])([0#?]+) */ *([1-9]\d*|[0#?]+)")
_NUMERIC_SECTIONS: Final = 3
_REMEMBERED: Final = 1024
"""Numbers of a format, as of the days of a month."""
_TO_NUMBER = re.compile(r"(?:[$€£¥₹₽₩]\s?)?\d")
_HAS_MINUS = re.compile(r"^[-−]|[-−]\s?[$€£¥₹₽₩]?\s?\d")


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of a code between semicolons: which numbers it shows, and how; ``words`` are its letters."""

    holds: Callable[[float], bool] | None
    show: Show
    words: str
    is_date: bool
    is_general: bool


@cache
def shower(code: str, *, is_1904: bool) -> Show | None:
    """Return what shows numbers by a code; None where they are shown as they are."""
    starts = [0, *(found.end() for found in _TOKEN.finditer(code) if found["sign"] == ";")]
    raw = [code[start : end - 1] for start, end in zip(starts, [*starts[1:], len(code) + 1], strict=True)]
    numeric = [part for part in raw[:_NUMERIC_SECTIONS] if "@" not in part] or ["General"]  # that one is for texts
    sections = [_section(part, is_1904=is_1904) for part in numeric]
    if all(section.is_general for section in sections):
        return None
    usual: Sequence[Callable[[float], bool]] = (
        [lambda value: value >= 0 or len(sections) == 1] if len(sections) < _NUMERIC_SECTIONS
        else [lambda value: value > 0, lambda value: value < 0]
    )  # fmt: skip
    choices = [section.holds or rule for section, rule in zip(sections, usual, strict=False)]

    first = sections[0]
    is_usual = first.holds is None

    def show(value: float) -> str:
        if is_usual and value > 0:
            chosen = first
        else:
            pairs = zip(sections, choices, strict=False)
            chosen = next((section for section, holds in pairs if holds(value)), sections[-1])
        if chosen.is_date:
            return chosen.show(value)
        text = chosen.show(abs(value))
        if not text:
            return plain(value)
        return text if value >= 0 or (chosen is not first and chosen.words != first.words) else with_minus(text)

    return lru_cache(_REMEMBERED)(show)


def with_minus(text: str) -> str:
    """Return the text of a number with a minus before it, in the place of any other form."""
    if _HAS_MINUS.search(text):
        return text
    bare = text.strip("-−").replace("(", "", 1).replace(")", "", 1) if re.search(r"\(.*\)|[-−]$", text) else text
    found = _TO_NUMBER.search(bare)
    return f"{bare[: found.start()]}-{bare[found.start() :]}" if found else bare


def _section(raw: str, *, is_1904: bool) -> _Section:
    tokens, holds, language = list[Token](), None, ""
    for found in _TOKEN.finditer(raw):
        kind = found.lastgroup or ""
        if kind in ("quoted", "escaped", "other", "blank"):
            tokens.append(("text", " " if kind == "blank" else found[kind]))
        elif kind != "bracket":
            tokens += [(kind, found[kind])] if kind else []
        elif _ELAPSED.fullmatch(found[kind]):
            tokens.append(("elapsed", found[kind]))
        elif found[kind].startswith("$"):
            symbol, _, language = found[kind][1:].partition("-")
            tokens.append(("text", symbol))
        elif condition := _CONDITION.fullmatch(found[kind]):
            holds = partial(_COMPARED[condition[1]], float(condition[2]))
    kinds = {kind for kind, _ in tokens}
    words = "".join(filter(str.isalpha, "".join(text for kind, text in tokens if kind == "text")))
    is_date = bool(kinds & {"date", "elapsed"}) and "digit" not in kinds
    if is_date:
        show = date_shower(tokens, language, is_1904=is_1904)
    elif (fraction := _FRACTION.search(raw)) is not None:
        show = fraction_shower(fraction, _literals(raw[: fraction.start()]), _literals(raw[fraction.end() :]))
    else:
        show = number_shower(tokens)
    is_general = kinds == {"general"} or (not kinds and not raw)
    return _Section(holds, show, words, is_date, is_general)


def _literals(raw: str) -> str:
    return "".join(found["quoted"] or found["escaped"] or found["other"] or "" for found in _TOKEN.finditer(raw))
