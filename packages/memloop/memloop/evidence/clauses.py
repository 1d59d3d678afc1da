"""What a sentence of Chinese, Japanese or Korean says in fewer words.

An English statement may end before a sentence does: *it opens at nine* of *it opens at nine and has a garden*. In
Japanese and Korean a clause before another has another ending, ``500円を払い、帰った`` for ``500円を払った``. In all
three a statement may leave out what stands between the topic and another clause, in Japanese a phrase before the verb.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice, product, takewhile
from typing import Final

from memloop.evidence.language import Pattern, Tables, Words, WordSet, filled
from memloop.evidence.units import OF_TIME
from memloop.evidence.words import Word

_MOST: Final = 8
"""Shorter sentences that are tried of one, and places where one may begin."""
_MOST_SIGNS, _MOST_WORDS = 3, 6
"""Words of the longest ending before another clause, and of the longest one of a statement."""


class _Clauses(Tables):
    """See ``clauses.toml``."""

    short_stems: str
    verbs: tuple[Words, ...]
    endings: tuple[Words, ...]
    korean: Words
    korean_ends: Words
    said: Pattern
    unsure: Pattern
    no_adjunct: Pattern
    particles: WordSet
    topics: WordSet
    no_clause: Pattern
    clause: str


_TEXTS: Final = _Clauses.read("clauses")
_PAST: Final = re.compile(r"(?:た|[んい]だ|" + unicodedata.normalize("NFD", "\u11bb(?:다|습니다))$"))
_HAS_TENSE: Final = re.compile(unicodedata.normalize("NFD", "있|\u11bb|니$|\u11ab데$") + "|おり$")
"""An ending that says when by itself, or that gives a reason: it is no part of what follows."""
_UNSURE: Final = re.compile(f"{_TEXTS.said.pattern}|{_TEXTS.unsure.pattern}")
"""What a last clause says of the ones before it, too."""
_NAMES_AND_PARTICLES: Final = re.compile(r"[^\u3040-\u309fー]|[のにでをへからまより]")
_CLAUSE: Final = re.compile(filled(_TEXTS.clause, {"short_stems": _TEXTS.short_stems}))
_KANA_OR_HANGUL: Final = re.compile(r"[ぁ-ん가-힣]")


def _letters(text: str) -> str:
    """Return a text with the letters of Korean signs as signs of their own: a vowel and an ending make one."""
    return unicodedata.normalize("NFD", text) if max(text, default="") >= "가" else text


def _alike(ones: Sequence[str], others: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ones, others, strict=False)))


def _pairs() -> Iterator[tuple[str, str]]:
    """Yield an ending before another clause and one of a statement, without what both begin with."""
    rows = [(row[:1], row[1:]) for row in _TEXTS.endings]
    short = ((stem, f"{stem}る", f"{stem}た") for stem in _TEXTS.short_stems)
    for stem, now, past in (*_TEXTS.verbs, *short):
        bound = past[:-1] + ("て" if past[-1] == "た" else "で")
        rows.append(((stem, bound), (now, past, f"{stem}ます", f"{stem}ました", f"{bound}ください")))
    for firsts, ends in rows:
        for first, end in product(map(_letters, firsts), map(_letters, ends)):
            shared = min(_alike(first, end), len(first) - 1)
            yield first[shared:], end[shared:]
    korean = [unicodedata.normalize("NFD", end) for end in _TEXTS.korean_ends]
    yield from product((*map(_letters, _TEXTS.korean), *korean), korean)


_FORMS: Final = frozenset(_pairs())


def shorter(sentence: Sequence[Word], claimed: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield what the sentence says in its clauses, and without what may be left out, as claimed."""
    for said in islice(_clauses(sentence, claimed), _MOST):
        yield said
        yield from islice(_without_a_part(said, claimed), _MOST)


def _clauses(sentence: Sequence[Word], claimed: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield the sentence up to the end of a clause, in the ending that is claimed."""
    for end, at, size in islice(_ends(sentence, claimed), 2 * _MOST):
        parts = (sentence[at - 1 : end], claimed[len(claimed) - size - 1 :])
        ending, said = ("".join(word.norm for word in part) for part in parts)
        if at == end or _holds_for_all(ending, said, sentence[end:]):
            yield (*sentence[:at], *claimed[len(claimed) - size :])


def _ends(sentence: Sequence[Word], claimed: Sequence[Word]) -> Iterator[tuple[int, int, int]]:
    """Yield where clauses end, where their endings begin, and how many words are claimed instead."""
    for end in range(len(sentence), 1, -1):
        if end < len(sentence) and not sentence[end].opens and not _is_apart(*sentence[end - 1 : end + 1]):
            continue
        if sentence[end - 1].norm == claimed[-1].norm:
            yield end, end, 0
            continue
        for at, size in product(range(end - 1, max(0, end - 1 - _MOST_SIGNS), -1), range(1, _MOST_WORDS + 1)):
            if size < len(claimed) and sentence[at - 1].norm == claimed[-size - 1].norm:
                ending, said = ("".join(word.norm for word in part) for part in (sentence[at:end], claimed[-size:]))
                if _is_form(ending, said):
                    yield end, at, size
                    break


def _is_apart(before: Word, word: Word) -> bool:
    """Return whether a Korean word ends before this one."""
    return before.norm >= "가" and not word.is_joined


def _is_form(ending: str, claimed: str) -> bool:
    one, other = _letters(ending), _letters(claimed)
    same = _alike(one, other)
    return any((one[at:], other[at:]) in _FORMS for at in range(max(0, same - 1), same + 1))


def _holds_for_all(ending: str, claimed: str, behind: Sequence[Word]) -> bool:
    """Return whether a clause is said by itself, in the tense of what follows, and in its mood."""
    rest = "".join(f"{'、' if word.opens else ''}{word.norm}" for word in behind) or ending
    is_past, goes_on_past = (_PAST.search(_letters(text)) is not None for text in (claimed, rest))
    has_tense = _HAS_TENSE.search(_letters(ending)) is not None or claimed.endswith(("이다", "입니다"))
    return (
        (rest[:1] == "、" or ending[-1] != "로")
        and (has_tense or is_past == goes_on_past or (is_past and rest.startswith(("、現在", "、今"))))
        and claimed.endswith("ください") == rest.endswith("ください")
        and not (_TEXTS.said if has_tense else _UNSURE).search(rest)
    )


def _without_a_part(said: Sequence[Word], claimed: Sequence[Word]) -> Iterator[Sequence[Word]]:
    norms, wanted = [word.norm for word in said], [word.norm for word in claimed]
    size, behind = len(claimed), _alike(norms[::-1], wanted[::-1])
    for start in [at for at, norm in enumerate(norms) if norm == wanted[0]][:_MOST]:
        for head in range(min(_alike(norms[start:], wanted), size - 1), max(0, size - behind - 1), -1):
            from_, to = start + head, len(said) - size + head
            if from_ < to and _may_be_left_out(said, from_, to):
                yield (*said[:from_], *said[to:])


def _may_be_left_out(said: Sequence[Word], from_: int, to: int) -> bool:
    """Return whether it is one phrase that says where, whence or to whom, or clauses of the topic before it."""
    before, words, behind = said[from_ - 1], said[from_:to], said[to]
    signs = "".join(
        f"{'、' if word.opens else ''}{word.norm if not word.is_value else '0天' if word.unit in OF_TIME else '0'}"
        for word in words
    )
    if any(word.negates for word in words):
        return False
    is_chinese = not any(_KANA_OR_HANGUL.match(word.norm) for word in said)
    if (before.norm in _TEXTS.topics or is_chinese) and (behind.opens or _is_apart(words[-1], behind)):
        clauses = signs.removeprefix("、").split("、")
        if not _TEXTS.no_clause.search(signs) and all(map(_CLAUSE.match, clauses)):
            return True
    return (
        signs[-1] in _TEXTS.particles
        and not _TEXTS.no_adjunct.search(signs)
        and not any(word.is_value for word in (*words, *said[to:]))
        and "、" not in signs[1:]
        and (
            signs[0] == "、"
            or (before.norm in (*_TEXTS.particles, "て") and all(map(_NAMES_AND_PARTICLES.match, signs)))
        )
    )
