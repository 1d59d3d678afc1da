"""Gathers the suspects of an audit, memory by memory: one pass, a few small entries for each.

Rules over one memory: what is junk, and what is stale. Linear in the text, which is read up to a bound.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from memloop.wire.feedback import Verdict
from memloop.wire.quality import AuditedMemory, AuditExample, AuditFinding, Suspicion
from memory_store.items.documents import Record
from memory_store.items.identity import normalised_key

BECAUSE: Final[Mapping[str, str]] = {
    "same text": "other memories say the same, under other keys or in other parts of the namespace",
    "same words": "other memories have the same words in the same order, apart from function words",
    "one key, two values": "live memories under one key have different values",
    "other number": "memories differ in a number only",
    "other negation": "memories differ in a negation only",
    "called outdated": "a client called it outdated",
    "relative time": "it names a time relative to a day long past",
    "not stated again": "it was not stated again for the time that the audit asked for",
    "called wrong": "a client called it wrong",
    "no words": "it has neither a letter nor a digit",
    "pleasantry": "it is a greeting, a thank-you or a filler",
    "question": "it asks and states nothing",
    "repetition": "one word makes up half of it",
    "symbols": "most of its characters are neither letters, digits nor spaces",
}
MOST_CHARS: Final = 2_000
"""Of a text that rules read; a longer text is only compared as a whole."""
_RELATIVE_DAYS: Final = 30
_RELATIVE = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|right now|at the moment|(?:this|next) (?:week|weekend|month|morning"
    r"|afternoon|evening))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
_PLEASANTRIES = frozenset(
    (
        *("hi", "hello", "hey", "welcome", "good", "morning", "evening", "night", "bye", "goodbye"),
        *("thanks", "thank", "you", "please", "sorry", "well", "hm", "hmm", "lol"),
        *("ok", "okay", "yes", "no", "sure", "fine", "great", "cool", "nice", "alright", "yeah", "yep", "nope"),
    )
)
_MOST_PLEASANT = 4
_LEAST_REPEATING = 8
_LEAST_SYMBOLS = 20


def junk_rule(record: Record, text: str) -> str | None:
    """Return the first rule by which the memory is junk."""
    if record.item.feedback is not None and record.item.feedback.verdict == "wrong":
        return "called wrong"
    words = [word.casefold() for word in _WORD.findall(text)]
    if not any(char.isalnum() for char in text):
        return "no words"
    if len(words) <= _MOST_PLEASANT and _PLEASANTRIES.issuperset(words):
        return "pleasantry"
    if text.rstrip().endswith(_QUESTION_MARKS):
        return "question"
    if len(words) >= _LEAST_REPEATING and max(Counter(words).values()) * 2 >= len(words):
        return "repetition"
    plain = sum(char.isalnum() or char.isspace() for char in text)
    return "symbols" if (len(text) >= _LEAST_SYMBOLS and plain * 2 < len(text)) else None


def stale_rule(record: Record, text: str, *, at: datetime, stale_after: timedelta | None) -> str | None:
    """Return the first rule by which the memory is stale. Relative times are found in English."""
    if record.item.feedback is not None and record.item.feedback.verdict == "outdated":
        return "called outdated"
    age = at - record.confirmed_at
    if age > timedelta(days=_RELATIVE_DAYS) and _RELATIVE.search(text):
        return "relative time"
    return "not stated again" if stale_after is not None and age > stale_after else None


_EXCERPT_CHARS = 160
_SHOWN = 5
_MOST_VARIANTS = 3
"""More values of one sentence are a list of events, such as visits on many days, and contradict nothing."""
_LEAST_WORDS = 3
_NUMBER = "#"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What later memories are compared with."""

    id: str
    key: str
    excerpt: str
    text: str
    """The value's hash."""
    words: tuple[str, ...]
    marked: frozenset[str]


@dataclass(slots=True)
class Words:
    """How texts are compared: their terms in order, and the numbers and negations among them."""

    terms: Callable[[str], Sequence[str]]
    marked: Callable[[str], frozenset[str]]


@dataclass(slots=True)
class Suspects:
    """The suspects so far. ``at`` is the time of the audit."""

    words: Words
    at: datetime
    stale_after: timedelta | None = None
    memories: int = 0
    feedback: Counter[Verdict] = field(default_factory=Counter[Verdict])
    _alone: dict[Suspicion, dict[str, list[_Seen]]] = field(
        default_factory=lambda: {"stale": defaultdict(list), "junk": defaultdict(list)}
    )
    _compared: list[_Seen] = field(default_factory=list[_Seen])
    _keys: dict[str, list[_Seen]] = field(default_factory=lambda: defaultdict(list))

    def take(self, records: Iterable[Record]) -> None:
        for record in records:
            self.memories += 1
            item, text = record.item, record.item.memory[:MOST_CHARS]
            whole = len(item.memory) <= MOST_CHARS
            words = tuple(self.words.terms(text)) if whole else ()
            marked = self.words.marked(text) if whole else frozenset[str]()
            excerpt = item.memory[:_EXCERPT_CHARS]
            seen = _Seen(item.id, item.key[:_EXCERPT_CHARS], excerpt, item.hash, words, marked)
            if item.feedback is not None:
                self.feedback[item.feedback.verdict] += 1
            if junk := junk_rule(record, text):
                self._alone["junk"][junk].append(seen)
                continue
            if stale := stale_rule(record, text, at=self.at, stale_after=self.stale_after):
                self._alone["stale"][stale].append(seen)
            if stale != "called outdated":
                self._compared.append(seen)
                self._keys[normalised_key(item.key)].append(seen)

    def findings(self, *, examples: int) -> tuple[AuditFinding, ...]:
        """Return all suspicions; each shows so many examples, the largest groups first."""
        groups: dict[Suspicion, list[tuple[str, list[_Seen]]]] = {
            "duplicate": list(self._duplicates()),
            "contradiction": list(self._contradictions()),
            "stale": [(rule, [one]) for rule, found in self._alone["stale"].items() for one in found],
            "junk": [(rule, [one]) for rule, found in self._alone["junk"].items() for one in found],
        }
        findings: list[AuditFinding] = []
        for name, found in groups.items():
            spared = 1 if name == "duplicate" else 0
            by_rule: Counter[str] = Counter()
            for rule, group in found:
                by_rule[rule] += len(group) - spared
            count = len({one.id for _, group in found for one in group[spared:]})
            largest = sorted(found, key=lambda group: -len(group[1]))[:examples]
            findings.append(
                AuditFinding(
                    suspicion=name,
                    memories=count,
                    share=round(count / self.memories, 4) if self.memories else 0.0,
                    by_rule=dict(by_rule),
                    examples=tuple(_example(rule, group) for rule, group in largest),
                )
            )
        return tuple(findings)

    def _duplicates(self) -> Iterator[tuple[str, list[_Seen]]]:
        by_text = _grouped(self._compared, lambda one: one.text)
        firsts = [group[0] for group in by_text]
        yield from (("same text", group) for group in by_text if len(group) > 1)
        by_words = _grouped((one for one in firsts if one.words), lambda one: one.words)
        yield from (("same words", group) for group in by_words if len(group) > 1)

    def _contradictions(self) -> Iterator[tuple[str, list[_Seen]]]:
        for same_key in self._keys.values():
            values = [group[0] for group in _grouped(same_key, lambda one: one.text)]
            if len(values) > 1:
                yield "one key, two values", values
        numbered = (one for one in self._compared if one.marked)
        for alike in _grouped(numbered, lambda one: tuple(_NUMBER if _has_digit(word) else word for word in one.words)):
            yield from _differing("other number", alike, lambda one: tuple(filter(_has_digit, one.words)))
        negated = {_stem(one) for one in self._compared if _negations(one)}
        bare = (one for one in self._compared if one.words and _stem(one) in negated)
        for alike in _grouped(bare, _stem):
            yield from _differing("other negation", alike, lambda one: bool(_negations(one)))


def _grouped(seen: Iterable[_Seen], key: Callable[[_Seen], object]) -> list[list[_Seen]]:
    groups: dict[object, list[_Seen]] = defaultdict(list)
    for one in seen:
        groups[key(one)].append(one)
    return list(groups.values())


def _differing(rule: str, alike: Sequence[_Seen], what: Callable[[_Seen], object]) -> Iterator[tuple[str, list[_Seen]]]:
    """Yield one memory of each value of a sentence that has two or three."""
    variants = [group[0] for group in _grouped(alike, what)]
    if 1 < len(variants) <= _MOST_VARIANTS and len(alike[0].words) >= _LEAST_WORDS:
        yield rule, variants


def _negations(one: _Seen) -> frozenset[str]:
    return frozenset(word for word in one.marked if not _has_digit(word))


def _stem(one: _Seen) -> tuple[str, ...]:
    """Return the words without negations."""
    negations = _negations(one)
    return tuple(word for word in one.words if word not in negations)


def _has_digit(word: str) -> bool:
    return any(char.isdigit() for char in word)


def _example(rule: str, group: Sequence[_Seen]) -> AuditExample:
    shown = tuple(AuditedMemory(id=one.id, key=one.key, excerpt=one.excerpt) for one in group[:_SHOWN])
    return AuditExample(rule=rule, because=BECAUSE[rule], count=len(group), memories=shown)
