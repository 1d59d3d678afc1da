"""Names of speakers in a question: they select turns by speaker, and disturb the rankings of words and meanings."""

import re
from collections.abc import Collection

from memory_store.items.conversation import NAME_WORD, name_words

_POSSESSIVE = re.compile(r"['\u2019]s\b")
_SPACES = re.compile(r"\s+")
_MOST = 64


def possible_names(question: str) -> tuple[str, ...]:
    """Returns the words, folded, that may name a speaker: those in capitals, or all where the case is not kept."""
    words = [match.group() for match in NAME_WORD.finditer(question)]
    capital = [word for word in words if not word.islower()]
    return name_words(" ".join(capital if len(capital) > 1 or (capital and capital[0] != words[0]) else words))[:_MOST]


def without_names(question: str, names: Collection[str]) -> str:
    """Returns the question without the words (folded), their possessive s and extra space.

    A question of nothing else stays as it was.
    """
    if not names:
        return question
    kept: list[str] = []
    at = 0
    for match in NAME_WORD.finditer(question):
        if match.group().casefold() in names:
            possessive = _POSSESSIVE.match(question, match.end())
            kept.append(question[at : match.start()])
            at = possessive.end() if possessive else match.end()
    rest = _SPACES.sub(" ", "".join((*kept, question[at:]))).strip()
    return rest if NAME_WORD.search(rest) else question
