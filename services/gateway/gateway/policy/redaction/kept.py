"""Rules of gitleaks, which others keep up to date: data of a pinned version, read once and compiled as they are needed.

``make redaction-rules`` writes the data. A rule is tried only on a text that holds one of its keywords.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from math import log2
from typing import Any, Final

from memloop.wire.redaction import Kind

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
        places = (self._place(match) for match in self.pattern.finditer(text))
        return [(start, end) for start, end in places if bits_for_each(text[start:end]) > self.entropy]

    def _place(self, match: re.Match[str]) -> tuple[int, int]:
        named = match.span(self.group)
        groups = (named, *(match.span(number) for number in range(1, (match.re.groups or 0) + 1)))
        return next((place for place in groups if place[1] - place[0] >= _LEAST_GROUP_CHARS), match.span())


@cache
def kept_rules() -> tuple[KeptRule, ...]:
    """Return gitleaks' rules."""
    kept: dict[str, Any] = json.loads(files("gateway.policy.redaction").joinpath("gitleaks.json").read_text())
    return tuple(
        KeptRule(rule["id"], tuple(rule["keywords"]), rule["pattern"], rule["group"], rule.get("entropy", 0))
        for rule in kept["rules"]
    )


@cache
def _by_keyword() -> tuple[tuple[str, tuple[int, ...]], ...]:
    places: dict[str, list[int]] = {}
    for place, rule in enumerate(kept_rules()):
        for keyword in rule.keywords:
            places.setdefault(keyword, []).append(place)
    return tuple((keyword, tuple(rules)) for keyword, rules in places.items())


def kept_rules_for(lowered: str) -> Iterator[KeptRule]:
    """Return the rules of which a keyword stands near something long with a digit. The text is in lower case."""
    long = (match.span() for match in _LONG.finditer(lowered) if _DIGIT.search(match[0]))
    near = "\n".join(lowered[max(0, start - _NEAR_CHARS) : end] for start, end in long)
    if not near:
        return iter(())
    hits = {place for keyword, places in _by_keyword() if keyword in near for place in places}
    return map(kept_rules().__getitem__, sorted(hits))


def bits_for_each(value: str) -> float:
    """Return the Shannon entropy of the value's characters, in bits for each of them."""
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * log2(share) for share in shares)
