"""Redacts personal identifiers and credentials from texts by rules, without a model.

A value gets the same mark throughout one trace (``[email 1]``), so that a question, its memory and its answer still
match. Names and prose remain. Where that is not enough, configure another redactor
(``MEMLOOP_TRACE_REDACTOR=package.module:function``).
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, cast

from gateway.settings import function_at

Redact: TypeAlias = Callable[[str], str]
"""Returns a text without sensitive values."""
NewRedactor: TypeAlias = Callable[[], Redact]
"""Creates the redactor of one trace."""

_PREFIXED = r"(?:sk|pk|rk|ml|mlp|key|whsec|ghp|gho|ghs|github_pat|glpat|xox[abprs]|hf|pypi)[-_][A-Za-z0-9_\-]{12,}"
_RULES: Final[tuple[tuple[str, str], ...]] = (
    ("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----"),
    ("token", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("key", rf"\b{_PREFIXED}|\b(?:AKIA|ASIA)[A-Z0-9]{{16}}\b|\bAIza[A-Za-z0-9_-]{{30,}}"),
    ("password", r"(?i:(?<=://)[^\s/:@]+:[^\s/@]+(?=@))"),
    ("email", r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"),
    ("iban", r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"),
    ("card", r"(?<![\w.])\d(?:[ -]?\d){12,18}(?![\w])"),
    ("address", r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"),
    ("phone", r"(?<![\w.])(?:\+|00)\d(?:[ ().\-/]{0,2}\d){6,14}(?!\w)"),
    ("phone", r"(?<![\w.])\(?0\d{1,4}\)?(?:[ .\-/]\d{2,5}){2,4}(?!\w)"),
    ("phone", r"(?<![\w.])(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}(?!\w)"),
)
_ANY: Final = re.compile("|".join(f"(?P<r{place}>{rule})" for place, (_, rule) in enumerate(_RULES)), re.DOTALL)
_CHECKED: Final = "card"
# fmt: off
_NO_TEXT: Final = frozenset((
    "id", "kind", "at", "model", "profile", "strategy", "tools", "action", "role", "type",
    "valid_from", "timestamp", "message_id", "tool_call_id", "finish_reason", "parse_path",
))
# fmt: on


class RuleRedactor:
    """Redacts the texts of one trace; equal values get equal marks."""

    def __init__(self) -> None:
        self._marks: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, text: str) -> str:
        """Return the text with marks in place of matched values."""
        return _ANY.sub(self._mark, text)

    def _mark(self, found: re.Match[str]) -> str:
        kind = _RULES[int((found.lastgroup or "r0")[1:])][0]
        value = found[0]
        if kind == _CHECKED and not passes_luhn(value):
            return value
        known = self._marks.get((kind, value.casefold()))
        if known is None:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            known = self._marks[kind, value.casefold()] = f"[{kind} {self._counts[kind]}]"
        return known


def passes_luhn(number: str) -> bool:
    """Return whether the digits pass the checksum of card numbers (ISO/IEC 7812-1, annex B)."""
    digits = [int(char) for char in number if char.isdigit()][::-1]
    return sum(digits[0::2]) % 10 == (-sum(_folded(digit) for digit in digits[1::2])) % 10


def redactor_at(name: str) -> NewRedactor:
    """Load the factory named ``package.module:function``, or the built-in one when empty. Raises ValueError."""
    if not name:
        return RuleRedactor
    return cast(NewRedactor, function_at(name, setting="MEMLOOP_TRACE_REDACTOR"))


def redacted(value: object, redact: Redact) -> object:
    """Redact every text in a JSON value, except ids, times and other fields that users did not write."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redacted(each, redact) for each in cast(Iterable[object], value)]
    if isinstance(value, dict):
        fields = cast(dict[str, object], value)
        return {name: each if name in _NO_TEXT else redacted(each, redact) for name, each in fields.items()}
    return value


def _folded(digit: int) -> int:
    return 2 * digit - 9 if digit > 4 else 2 * digit
