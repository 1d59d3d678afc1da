"""A statement with its evidence, and the sentences into which texts are cut, with their places."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from memloop.wire.long_read import EvidenceSource


@dataclass(frozen=True, slots=True)
class TextSpan:
    """``text`` stands at ``start`` to ``end``, in characters. ``chunk`` is where it begins, in a document of chunks."""

    start: int
    end: int
    text: str
    chunk: int = 0


@dataclass(frozen=True, slots=True)
class SimilarSpan:
    """A sentence that may say the same in other words, and the cosine of the two embeddings."""

    span: TextSpan
    similarity: float


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement and the spans of the document that support it; without any, perhaps a similar one."""

    statement: str
    source: EvidenceSource
    spans: tuple[TextSpan, ...]
    similar: SimilarSpan | None = None

    @property
    def supported(self) -> bool:
        """Whether at least one span supports it."""
        return bool(self.spans)


# Possessive runs that start nowhere but at their first mark: a text of marks alone is scanned once.
_END = re.compile(
    r"""(?<![.!?…])[.!?…]++["'”’)\]]*+(?=\s)(?!(?<=[ap]\.m\.)\s+[a-zß-ÿ])"""
    r"""|(?<=[a-zß-ÿ\d])[.!?…]["'”’)\]]*+(?=[A-ZÀ-Þ](?:[a-zß-ÿ]|\s))"""  # pasted text may lack the blank
    r"""|[;。！？]["'”’)\]」』]*+|\n\s*\n"""
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s\d(\"'])(?:[A-HJ-Z]|Mrs?|Ms|Dr|Prof|St|Sr|Jr|vs|etc|e\.g|i\.e|cf|Inc|Ltd|approx|Mio|Mrd|Nr|Abs|Art|bzw|ca|vgl"
    r"|inkl|zzgl|Hr|Fr|Sra|Srta|Mme|Mlle|núm|pág|Sig|Dott|ecc|тыс|млн|млрд|руб|ул|стр|рис|им|т\.е|tys|Tsd|Mds?|Rs)\.$"
)
_BEFORE_NUMBER = re.compile(
    r"(?:^|[\s(\"'])(?:nos?|figs?|vols?|pp?|sec|ch|ext|tel|kl|godz|ziff|kap|min|max|abb|tab|ca|cap|n|s|p|art)\.$",
    re.IGNORECASE,
)
"""Abbreviations where a number follows: ``invoice no. 7``, ``kl. 18.30``."""
_LONGEST_ABBREVIATION = 8
"""Characters of the longest one, with the sign before it."""
_ORDINAL = re.compile(r"(?<!\d)(?<!\d[.,])\d{1,2}\.$")
_ORDERED = re.compile(
    r"\s+(?:Jan|Jän|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahrhundert|Quartal|Platz|Stock|Etage|piętr|miejsc|wiek|våning|plats|verdieping|plaats|ins|von|des)\w*\b",
    re.IGNORECASE,
)
"""What follows the point of an ordinal: ``am 3. April``."""
_REGNAL = re.compile(r"\b[IVX]{2,5}\.(?=\s[a-zß-ÿ])")
"""``Karl IV. war``."""
_MARK = re.compile(r"</?confirmed>|^[ \t]*(?:[-*•–]|\d{1,2}[.)])[ \t]+", re.MULTILINE | re.IGNORECASE)


def sentences_of(text: str) -> Iterator[TextSpan]:
    """Yield sentences and clauses (up to a semicolon) that contain a letter or digit, without surrounding blanks."""
    start = 0
    for end in chain((match.end() for match in _END.finditer(text)), (len(text),)):
        if end < len(text) and _ABBREVIATION.search(text, max(start, end - _LONGEST_ABBREVIATION), end):
            continue
        if text[end : end + 2].lstrip()[:1].isdigit() and _BEFORE_NUMBER.search(
            text, max(start, end - _LONGEST_ABBREVIATION), end
        ):
            continue
        if _ORDINAL.search(text, max(start, end - 4), end) and _ORDERED.match(text, end):
            continue
        if _REGNAL.search(text, max(start, end - 6), end + 2):
            continue
        piece = text[start:end]
        stripped = piece.strip()
        if any(sign.isalnum() for sign in stripped):
            begin = start + piece.index(stripped)
            yield TextSpan(begin, begin + len(stripped), stripped)
        start = end


def statements_of(text: str) -> list[str]:
    """Return the statements of a memory or an answer: its sentences, by line, without list marks and our tags."""
    lines = _MARK.sub("", text).splitlines()
    return [sentence.text for line in lines for sentence in sentences_of(line)]
