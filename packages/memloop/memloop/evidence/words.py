"""The words of a statement or a sentence, as matching compares them."""

import re
import unicodedata
from dataclasses import dataclass

_WORD = re.compile(
    r"\d+(?:[.,:/-]\d+)*\w*"
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
    r"|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af](?:[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|['’](?=\w))*"
)
_COMMA = re.compile(r"(?<=\d),(?=\d)")
_POSSESSIVE = re.compile(r"['’]s$|['’]$")
_ENDINGS = ("ing", "ed", "es", "s", "e")
_LEAST_STEM = 3

# fmt: off
FUNCTION_WORDS = frozenset((
    "a", "an", "the", "this", "that", "these", "those", "of", "to", "in", "on", "at", "for", "from", "with", "as", "by",
    "and", "or", "but", "so", "than", "then", "also", "it", "its", "he", "she", "his", "her", "him", "they", "their",
    "them", "we", "our", "you", "your", "i", "my", "me", "is", "are", "was", "were", "be", "been", "being", "has",
    "have", "had", "do", "does", "did", "can", "could", "will", "would", "may", "might", "must", "shall", "should",
    "there", "here", "what", "who", "whom", "whose", "which", "where", "when", "why", "how", "many", "much", "tell",
    "about", "into", "not", "no", "never", "neither", "nor", "without", "cannot",
))
VERBS = frozenset((
    "is", "are", "was", "were", "be", "been", "being", "has", "have", "had", "do", "does", "did", "can", "could",
    "will", "would", "may", "might", "must", "shall", "should",
))
_NEGATIONS = frozenset(("not", "no", "never", "neither", "nor", "without", "cannot"))
# fmt: on


@dataclass(frozen=True, slots=True)
class Word:
    """``norm`` is the word in lower case, ``stem`` without its ending; ``anchor`` says that it must match exactly."""

    norm: str
    stem: str
    anchor: bool

    @property
    def content(self) -> bool:
        """Whether it says something by itself."""
        return self.norm not in FUNCTION_WORDS and not self.negates

    @property
    def negates(self) -> bool:
        """Whether it turns a statement round."""
        return self.norm in _NEGATIONS or self.norm.endswith(("n't", "n’t"))


def folded(text: str) -> str:
    """Return the text in the form in which ``norm`` and ``stem`` are searched."""
    return _COMMA.sub("", unicodedata.normalize("NFKC", text).casefold())


def words_of(text: str) -> tuple[Word, ...]:
    """Return the words in order. Numbers, names (capitals that are no function words) and CJK signs are anchors."""
    return tuple(_word(found[0]) for found in _WORD.finditer(unicodedata.normalize("NFKC", text)))


def _word(raw: str) -> Word:
    bare = _POSSESSIVE.sub("", raw)
    norm = bare.casefold()
    if norm[:1].isdigit():
        return Word(norm.replace(",", ""), norm.replace(",", ""), anchor=True)
    named = bare[:1].isupper() or any(sign.isdigit() for sign in bare) or (not bare[:1].isascii() and len(bare) == 1)
    return Word(norm, _stem(norm), anchor=named and norm not in FUNCTION_WORDS)


def _stem(norm: str) -> str:
    for ending in _ENDINGS:
        if norm.endswith(ending) and len(norm) - len(ending) >= _LEAST_STEM:
            return norm[: -len(ending)]
    return norm
