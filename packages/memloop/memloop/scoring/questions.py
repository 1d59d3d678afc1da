"""Compares questions by their words. Serving ends a reread for a repeated sub-question, and the reward punishes it."""

import re
from collections.abc import Iterable


def was_asked(question: str, earlier: Iterable[str]) -> bool:
    """Return whether an earlier question has the same words in the same order; case and punctuation do not count."""
    return _words(question) in {_words(past) for past in earlier}


def _words(question: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", question.casefold()))
