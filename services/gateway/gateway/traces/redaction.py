"""Redacts personal identifiers and credentials from texts by rules, without a model.

A value gets the same mark throughout one trace (``[email 1]``), so that a question, its memory and its answer still
match. Names and prose remain. Where that is not enough, configure another redactor
(``MEMLOOP_TRACE_REDACTOR=package.module:function``).
"""

from collections.abc import Callable
from typing import Final, TypeAlias, cast

from gateway.policy import Found, find_by_rules, redacted_json, replaced
from gateway.settings import function_at
from memloop.wire.redaction import ALL_KINDS, Kind

Redact: TypeAlias = Callable[[str], str]
"""Returns a text without sensitive values."""
NewRedactor: TypeAlias = Callable[[], Redact]
"""Creates the redactor of one trace."""

_NAMES: Final[dict[Kind, str]] = {"private_key": "private key", "ip": "address", "national_id": "id number"}
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
        """Return the text with marks in place of the values that the rules find."""
        return replaced(text, find_by_rules(text, ALL_KINDS), lambda found: self._mark(text, found))

    def _mark(self, text: str, found: Found) -> str:
        kind, value = _NAMES.get(found.kind, found.kind), text[found.start : found.end]
        known = self._marks.get((kind, value.casefold()))
        if known is None:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            known = self._marks[kind, value.casefold()] = f"[{kind} {self._counts[kind]}]"
        return known


def redactor_at(name: str) -> NewRedactor:
    """Load the factory named ``package.module:function``, or the built-in one when empty. Raises ValueError."""
    if not name:
        return RuleRedactor
    return cast(NewRedactor, function_at(name, setting="MEMLOOP_TRACE_REDACTOR"))


def redacted(value: object, redact: Redact) -> object:
    """Redact every text in a JSON value, except ids, times and other fields that users did not write."""
    return redacted_json(value, redact, skip=_NO_TEXT)
