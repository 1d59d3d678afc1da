"""The words of a statement or a sentence, as matching compares them."""

import re
import unicodedata
from dataclasses import dataclass

from memloop.evidence.values import Value, values_in

_WORD = re.compile(
    r"[^\W\d_]{1,3}\d+(?:\.\d+)+\w*|\d+\w*"
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
    r"|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af](?:[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|['’](?=\w))*"
)
_SIGNS = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_SIGN = re.compile(_SIGNS)
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[.,'’٬\u00a0\u202f ](?=\d)")
_BROKEN = re.compile(r"\u00ad\s*|(?<=[^\W\d_])[-‐]\s*\n\s*(?=[^\W\d_A-Z])")
"""Soft hyphens, and a word that is cut at a line's end."""
_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_POWER = re.compile(r"(?<=\d)(?=[⁻⁰¹²³⁴-⁹])")
_BESIDE_SIGN = re.compile(rf"(?<={_SIGNS})(?=(?!{_SIGNS})\S)|(?<=\S)(?<!{_SIGNS})(?={_SIGNS})")
_MINUS = re.compile(r"\b(?:minus|negative|moins|menos|meno|минус)\s+(?=\d)", re.IGNORECASE)
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
    "何", "誰", "谁", "哪", "里", "吗", "呢", "什", "么",
))
VERBS = frozenset((
    "is", "are", "was", "were", "be", "been", "being", "has", "have", "had", "do", "does", "did", "can", "could",
    "will", "would", "may", "might", "must", "shall", "should",
))
_NEGATIONS = frozenset((
    "not", "no", "never", "neither", "nor", "without", "cannot", "nicht", "kein", "keine", "keinen", "keiner", "nie",
    "niemals", "ne", "pas", "jamais", "aucun", "aucune", "non", "nessun", "nessuna", "nunca", "jamás", "ningún", "não",
    "не", "нет", "никогда", "不", "没", "沒", "未", "無", "无", "않", "안", "못",
))
# fmt: on


@dataclass(frozen=True, slots=True)
class Word:
    """``norm`` is the word in lower case, ``stem`` without its ending; ``anchor`` says that it must match exactly.

    A value has its one form in both, and the ``unit`` that stands with it.
    """

    norm: str
    stem: str
    anchor: bool
    unit: str = ""
    is_value: bool = False

    @property
    def probe(self) -> str:
        """How it stands in a folded text; empty for a value that may be written in another way."""
        return "" if self.is_value and not self.norm.isdigit() else folded(self.norm)

    @property
    def is_sign(self) -> bool:
        """Whether it is one sign of Chinese, Japanese or Korean."""
        return _SIGN.fullmatch(self.norm) is not None

    @property
    def content(self) -> bool:
        """Whether it says something by itself."""
        return self.norm not in FUNCTION_WORDS and not self.negates

    @property
    def negates(self) -> bool:
        """Whether it turns a statement round."""
        return self.norm in _NEGATIONS or self.norm.endswith(("n't", "n’t"))


def folded(text: str) -> str:
    """Return the text in the form in which ``norm`` and ``stem`` of words are searched, and the digits of numbers."""
    return _BETWEEN_DIGITS.sub("", plain(text).casefold())


def plain(text: str) -> str:
    """Return the text with words whole, widths and ligatures resolved, and fractions and powers beside their number."""
    apart = _POWER.sub("^", _FRACTION.sub(" ", _BROKEN.sub("", text)))
    level = unicodedata.normalize("NFKC", apart).replace("⁄", "/")
    return _MINUS.sub("-", _BESIDE_SIGN.sub(" ", level))


def words_of(text: str, *, commas: bool = False) -> tuple[Word, ...]:
    """Return the words in order. Values, names (capitals that are no function words) and CJK signs are anchors.

    ``commas`` says that decimals have commas.
    """
    text = plain(text)
    words: list[Word] = []
    start = 0
    for value in (*values_in(text, commas=commas), Value(len(text), len(text), "", "")):
        words += [_word(found[0]) for found in _WORD.finditer(text[start : value.start])]
        if value.norm:
            words.append(Word(value.norm, value.norm, anchor=True, unit=value.unit, is_value=True))
        start = value.end
    return tuple(words)


def _word(raw: str) -> Word:
    bare = _POSSESSIVE.sub("", raw)
    norm = bare.casefold()
    named = bare[:1].isupper() or any(sign.isdigit() for sign in bare) or (not bare[:1].isascii() and len(bare) == 1)
    endings = (each for each in _ENDINGS if norm.endswith(each) and len(norm) - len(each) >= _LEAST_STEM)
    return Word(norm, norm.removesuffix(next(endings, "")), anchor=named and norm not in FUNCTION_WORDS)
