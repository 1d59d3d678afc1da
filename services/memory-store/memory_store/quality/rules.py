"""Rules over one memory: what is junk, and what is stale. Linear in the text, which is read up to a bound."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from memory_store.items.documents import Record

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
