"""A statement with its evidence, and the sentences into which texts are cut, with their places."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from memloop.evidence.language import Pattern, Tables
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
    # a row of a list or a table, and one that begins with a label
    r"""|(?:\A|\n)[ \t]*+(?:[-*•–▪●○■□][ \t]+|[·・]|(?=#{1,6}[ \t]|\||[^\n|]{1,120}[ \t]\|"""
    r"""|[^\W\d_][^\n:：|!?。]{0,40}(?:(?<!\d)[:：](?!/)|[:：](?![\d/]))))"""
)


class _Points(Tables):
    """Points that do not end a sentence."""

    abbreviation: Pattern
    before_number: Pattern
    ordered: Pattern
    nth: Pattern
    goes_on: Pattern


_POINTS = _Points.read("sentences")
_LONGEST_ABBREVIATION, _LONGEST_NTH = 9, 16
"""Characters of the longest ones, with what stands before them."""
_ORDINAL = re.compile(r"(?<!\d)(?<!\d[.,])\d{1,2}\.\Z")
_DOTTED = re.compile(r"(?<!\d)(?:[12]\d{3}\.(?: \d{1,2}\.)?|\d{1,2}\. [IVX]{1,4}\.)\Z")
"""``2024. 4. 1.``, ``7. XI. 1922``"""
_MARK = re.compile(r"</?confirmed>|^[ \t]*(?:[-*•–]|\d{1,2}[.)])[ \t]+", re.MULTILINE | re.IGNORECASE)


def sentences_of(text: str) -> Iterator[TextSpan]:
    """Yield sentences and clauses (up to a semicolon) that contain a letter or digit, without surrounding blanks."""
    start = 0
    for end in chain((match.end() for match in _END.finditer(text)), (len(text),)):
        if end < len(text) and _goes_on(text, start, end):
            continue
        piece = text[start:end]
        stripped = piece.strip()
        if any(sign.isalnum() for sign in stripped):
            begin = start + piece.index(stripped)
            yield TextSpan(begin, begin + len(stripped), stripped)
        start = end


def _goes_on(text: str, start: int, end: int) -> bool:
    """Return whether a sentence does not end here: its point is an abbreviation's or an ordinal's."""
    follows, near = text[end : end + 2].lstrip()[:1], max(start, end - _LONGEST_ABBREVIATION)
    ways = [_POINTS.abbreviation]
    if follows.isdigit():
        ways += [_POINTS.before_number, _DOTTED]
    elif follows.islower() or follows == ":":
        ways += [_POINTS.goes_on]
    return (
        any(way.search(text, near, end) for way in ways)
        or _POINTS.nth.search(text, max(start, end - _LONGEST_NTH), end) is not None
        or (
            _POINTS.ordered.match(text, end) is not None and _ORDINAL.search(text, max(start, end - 4), end) is not None
        )
    )


def statements_of(text: str) -> list[str]:
    """Return the statements of a memory or an answer: its sentences, by line, without list marks and our tags."""
    lines = _MARK.sub("", text).splitlines()
    return [sentence.text for line in lines for sentence in sentences_of(line)]
