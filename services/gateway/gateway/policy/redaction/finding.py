"""Finds values of given kinds in a text and replaces them by marks that say nothing about them but their kind.

Beside our own rules it tries those of gitleaks, which others keep up to date: data of a pinned version, read once and
compiled as they are needed. ``make redaction-rules`` writes the data. A rule is tried only on a text that holds one of
its keywords.
"""

import json
import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from itertools import groupby
from math import log2
from typing import Any, Final, Protocol, cast

from gateway.policy.redaction.contexts import Rule, Sign
from gateway.policy.redaction.phrases import Refusals
from gateway.policy.redaction.rules import RULES
from gateway.settings import function_at
from memloop.wire.fields import folded
from memloop.wire.policy import SECRETS, Kind

_LONG: Final = re.compile(r"[^\s,;()\"'`]{14,}+")
_DIGIT: Final = re.compile(r"\d")
_NEAR_CHARS: Final = 80
"""A service's name may stand so far before its key."""
_LEAST_GROUP_CHARS: Final = 12
"""A shorter group is a part of the value that the pattern repeats, not the value."""


@dataclass(frozen=True)
class KeptRule:
    """Finds the keys of one service. ``entropy``: a value with fewer bits for each character is a placeholder."""

    id: str
    keywords: tuple[str, ...]
    source: str
    group: int
    entropy: float = 0
    kind: Kind = "key"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when it is needed first."""
        return re.compile(self.source, re.ASCII)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the places of the values, in order."""
        found: list[tuple[int, int]] = []
        for match in self.pattern.finditer(text):
            groups = (match.span(self.group), *(match.span(number) for number in range(1, (match.re.groups or 0) + 1)))
            place = next((place for place in groups if place[1] - place[0] >= _LEAST_GROUP_CHARS), match.span())
            found += [place] if bits_for_each(text[slice(*place)]) > self.entropy else []
        return found


@cache
def kept_rules() -> tuple[KeptRule, ...]:
    """Return gitleaks' rules."""
    kept: dict[str, Any] = json.loads(files("gateway.policy.redaction").joinpath("gitleaks.json").read_text())
    return tuple(
        KeptRule(rule["id"], tuple(rule["keywords"]), rule["pattern"], rule["group"], rule.get("entropy", 0))
        for rule in kept["rules"]
    )


def kept_rules_for(lowered: str) -> Iterable[KeptRule]:
    """Return the rules of which a keyword stands near something long with a digit. The text is in lower case."""
    long = (match.span() for match in _LONG.finditer(lowered) if _DIGIT.search(match[0]))
    near = "\n".join(lowered[max(0, start - _NEAR_CHARS) : end] for start, end in long)
    if not near:
        return ()
    return {rule.id: rule for rule in kept_rules() for keyword in rule.keywords if keyword in near}.values()


def bits_for_each(value: str) -> float:
    """Return the Shannon entropy of the value's characters, in bits for each of them."""
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * log2(share) for share in shares)


NEVER: Final = "never"
"""Under which sentences that are never kept are counted, beside the kinds of values."""
_RULES_BY_SIGNS: Final = tuple((signs, tuple(rules)) for signs, rules in groupby(RULES, lambda rule: rule.signs))
"""Consecutive rules with the same signs, for which a text is searched once."""
_DIGITS: Final = re.compile(r"\d\D{0,3}\d\D{0,3}\d")
_QUOTES: Final = frozenset({'"', "'", "`"})
_MARK: Final = re.compile(r"\[[a-z ]{2,20} redacted\]")


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A value's place in the text, in characters, and its kind."""

    start: int
    end: int
    kind: Kind


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
                    _add(rule.kind, _spans(rule, shown), found)
    if "key" in kinds:
        for rule in kept_rules_for(lowered):
            _add(rule.kind, rule.spans(shown), found)
    if places is None:
        return found
    return [Found(places[each.start], places[each.end - 1] + 1, each.kind) for each in found]


def _has_one(lowered: str, signs: Iterable[Sign]) -> bool:
    for sign in signs:  # noqa: SIM110 - any() takes twice as long
        if sign in lowered if isinstance(sign, str) else sign.search(lowered):
            return True
    return False


def _spans(rule: Rule, text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the values that the rule finds, in order."""
    for match in rule.pattern.finditer(text):
        start, end = match.span()
        group = next((name for name in ("value", "bare") if match.groupdict().get(name) is not None), None)
        if group is not None:
            start, end = match.span(group)
            quoted = text[start - 1 : start] in _QUOTES and text[end : end + 1] in _QUOTES
            end = end if quoted else start + len(match[group].rstrip(".,;:!?)]}…"))
        if end <= start or _MARK.match(text, start) or (rule.accepts is not None and not rule.accepts(match)):
            continue
        if rule.check is None or rule.check(text[start:end]):
            yield start, end


def _add(kind: Kind, spans: Iterable[tuple[int, int]], found: list[Found]) -> None:
    """Add values where no other rule has found one; a secret that overlaps with another extends it."""
    for start, end in spans:
        if end <= start:
            continue
        first = bisect_left(found, start, key=lambda each: each.end - 1)
        last = bisect_left(found, end, key=lambda each: each.start)
        others = found[first:last]
        if not others:
            insort(found, Found(start, end, kind))
        elif kind in SECRETS and all(each.kind in SECRETS for each in others):
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
        rest, refused = self.refusals.without(text) if self.refusals is not None else (text, 0)
        found = self.detector(rest, self.kinds) if self.kinds else []
        self.counts.update(each.kind for each in found)
        if refused:
            self.counts[NEVER] += refused
        redacted = replaced(rest, found, lambda each: mark_of(each.kind)) if found else rest
        if redacted == text:
            self._clean.add(text)
        return redacted


def redacted_json(value: object, redact: Callable[[str], str], *, skip: Set[str] = frozenset()) -> object:
    """Redact every text in a JSON value, except in the fields named in ``skip``. The names of fields stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list | tuple):
        return [redacted_json(part, redact, skip=skip) for part in cast(Iterable[object], value)]
    if isinstance(value, dict):
        return {
            name: part if name in skip else redacted_json(part, redact, skip=skip)
            for name, part in cast(dict[str, object], value).items()
        }
    return value


def detector_at(name: str) -> Detector:
    """Load the detector named ``package.module:function``, or the built-in rules when empty. Raises ValueError."""
    if not name:
        return find_by_rules
    return cast(Detector, function_at(name, setting="MEMLOOP_MEMORY_DETECTOR"))
