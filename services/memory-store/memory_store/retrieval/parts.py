"""A question in parts, without a model: where it joins two things, each is asked for by itself."""

import re

_JOINS = re.compile(r"\s*(?:;|,?\s+\b(?:and then|and|or|as well as|but|before|after|while)\b)\s+", re.IGNORECASE)
_MIN_WORDS = 2
_MOST = 4


def parts_of(question: str) -> tuple[str, ...]:
    """Two to four parts, or none when the question is about one thing."""
    found = [part.strip(" ?.!,") for part in _JOINS.split(question)]
    long_enough = [part for part in found if len(part.split()) >= _MIN_WORDS]
    return tuple(long_enough[:_MOST]) if len(long_enough) > 1 else ()
