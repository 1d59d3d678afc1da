"""Finds values of given kinds in a text and replaces them by marks that say nothing about them but their kind."""

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final, Protocol, cast

from gateway.policy.redaction.kept import kept_rules_for
from gateway.policy.redaction.phrases import Refusals
from gateway.policy.redaction.rules import RULES, Sign
from memloop.wire.names import folded
from memloop.wire.redaction import SECRETS, Kind

NEVER: Final = "never"
"""Under which sentences that are never kept are counted, beside the kinds of values."""
_LISTS: Final = (list, tuple)
_TEXTS: Final = (str, list, tuple, dict)
"""What may hold a text. To look at the others takes longer than to redact."""
_RULES_BY_SIGNS: Final = tuple((signs, tuple(rules)) for signs, rules in groupby(RULES, lambda rule: rule.signs))
"""Consecutive rules with the same signs, for which a text is searched once."""
_DIGITS: Final = re.compile(r"\d\D{0,3}\d\D{0,3}\d")


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A value's place in the text, in characters, and its kind."""

    start: int
    end: int
    kind: Kind


class Finder(Protocol):
    """A rule: finds values of one kind."""

    @property
    def kind(self) -> Kind:
        """The kind."""
        ...

    def spans(self, text: str, /) -> list[tuple[int, int]]:
        """Return the places of the values, in order."""
        ...


class Detector(Protocol):
    """Finds sensitive values: the built-in rules, or a library behind ``MEMLOOP_MEMORY_DETECTOR``."""

    def __call__(self, text: str, kinds: Set[Kind], /) -> list[Found]:
        """Return the values of these kinds, in order and without overlaps."""
        ...


def find_by_rules(text: str, kinds: Set[Kind], /) -> list[Found]:
    """Return the values of these kinds that the built-in rules find, in order and without overlaps."""
    shown, places = folded(text)
    lowered = shown.lower()
    found: list[Found] = []
    for signs, rules in _RULES_BY_SIGNS:
        if _has_one(lowered, signs) if signs else _DIGITS.search(shown):
            for rule in rules:
                if rule.kind in kinds:
                    _add(rule, shown, found)
    if "key" in kinds:
        for rule in kept_rules_for(lowered):
            _add(rule, shown, found)
    if places is None:
        return found
    return [Found(places[each.start], places[each.end - 1] + 1, each.kind) for each in found]


def _has_one(lowered: str, signs: Iterable[Sign]) -> bool:
    for sign in signs:  # noqa: SIM110 - any() takes twice as long
        if sign in lowered if isinstance(sign, str) else sign.search(lowered):
            return True
    return False


def _add(rule: Finder, text: str, found: list[Found]) -> None:
    """Add the rule's values where no other rule has found one; a secret that overlaps with another extends it."""
    for start, end in rule.spans(text):
        if end <= start:
            continue
        first = bisect_left(found, start, key=lambda each: each.end - 1)
        last = bisect_left(found, end, key=lambda each: each.start)
        others = found[first:last]
        if not others:
            insort(found, Found(start, end, rule.kind))
        elif rule.kind in SECRETS and all(each.kind in SECRETS for each in others):
            found[first:last] = [Found(min(start, others[0].start), max(end, others[-1].end), others[0].kind)]


def mark_of(kind: Kind) -> str:
    """Return what stands in a value's place."""
    return f"[{kind.replace('_', ' ')} redacted]"


def replaced(text: str, found: list[Found], mark: Callable[[Found], str]) -> str:
    """Return the text with a mark in place of each value."""
    parts: list[str] = []
    at = 0
    for each in found:
        parts += (text[at : each.start], mark(each))
        at = each.end
    return "".join((*parts, text[at:]))


@dataclass(slots=True)
class Redaction:
    """Redacts the texts of one write and counts what it takes out."""

    kinds: Set[Kind]
    detector: Detector
    counts: Counter[str]
    refusals: Refusals | None = None
    _clean: set[str] = field(default_factory=set[str], init=False, repr=False)
    """Texts that came out unchanged: a verbatim write has its text three times, as key, value and source."""

    @property
    def is_active(self) -> bool:
        """Whether any text can come out changed."""
        return bool(self.kinds) or self.refusals is not None

    @property
    def is_by_rules(self) -> bool:
        """Whether the built-in rules find the values, which takes a millisecond for thousands of characters."""
        return self.detector is find_by_rules

    def __call__(self, text: str) -> str:
        """Return the text without sentences that are never kept, with marks in place of its sensitive values."""
        if text in self._clean:
            return text
        redacted = self._redacted(text)
        if redacted == text:
            self._clean.add(text)
        return redacted

    def _redacted(self, text: str) -> str:
        if self.refusals is not None:
            text, refused = self.refusals.without(text)
            self.counts.update({NEVER: refused} if refused else {})
        found = self.detector(text, self.kinds) if self.kinds else []
        if not found:
            return text
        self.counts.update(each.kind for each in found)
        return replaced(text, found, lambda each: mark_of(each.kind))


def _may_hold_text(value: object) -> bool:
    return isinstance(value, _TEXTS)


def redacted_json(value: object, redact: Callable[[str], str], *, skip: Set[str] = frozenset()) -> object:
    """Redact every text in a JSON value, except in the fields named in ``skip``. The names of fields stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, _LISTS):
        parts = cast(Iterable[object], value)
        return [redacted_json(part, redact, skip=skip) if _may_hold_text(part) else part for part in parts]
    if isinstance(value, dict):
        fields = cast(dict[str, object], value)
        return {
            name: redacted_json(part, redact, skip=skip) if _may_hold_text(part) and name not in skip else part
            for name, part in fields.items()
        }
    return value
