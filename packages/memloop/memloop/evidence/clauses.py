"""What a Japanese sentence says in fewer words, since its verb stands last.

An English statement may end before a sentence does: *it opens at nine* of *it opens at nine in the square*. In
Japanese a phrase that may be left out stands before the verb, ``9時に、広場で開く``, and a clause before another has no
ending of its own: ``500円を払い、帰った`` says ``500円を払った``.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import Final

from memloop.evidence.words import Word

_MOST: Final = 8
"""Shorter sentences that are tried of one."""
_PARTICLES: Final = frozenset("にでをへらり")
"""Signs in which phrases end that are neither subject nor topic: ``から``, ``まで`` and ``より`` too."""
_NO_ADJUNCT: Final = re.compile(r"[はがもてとばなずぬ]|[んい]で")
"""A subject, a clause, a condition or a negation in what is left out."""
_NAMES_AND_PARTICLES: Final = re.compile(r"[^\u3040-\u309fー]|[のにでをへからまより]")
_UNSURE: Final = re.compile(
    r"ば|たら|なら|場合|と[、言話述語説思考伝主発報訴見いさみ]|な[いか]|ません|予定|可能|恐れ|見込|見通|方針|計画"
    r"|つもり|はず|らし|よう|たい|かも|もし|こと|[ずぬ、]$"
)
"""What a last clause says of the ones before it, too: a condition, a report, a plan."""
_PAST: Final = dict(zip("いちりみびきぎ", ("った", "った", "った", "んだ", "んだ", "いた", "いだ"), strict=True))
_PRESENT: Final = dict(zip("いきぎしちびみり", ("う", "く", "ぐ", "する", "つ", "ぶ", "む", "る"), strict=True))
_STEMS: Final = frozenset("いきぎしちびみりえけげせぜねべめれ")
_VERBS: Final = tuple("うくぐすつぬぶむる")


def shorter(sentence: Sequence[Word], claimed: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield what the sentence says without a phrase before its verb, and its clauses as sentences, as claimed."""
    yield from islice(_without_a_phrase(sentence, claimed), _MOST)
    yield from islice(_clauses(sentence, claimed), _MOST)


def _without_a_phrase(sentence: Sequence[Word], claimed: Sequence[Word]) -> Iterator[Sequence[Word]]:
    size, last = len(claimed), max((at for at, word in enumerate(claimed) if word.is_value), default=len(claimed))
    ends = (
        end
        for end in range(len(sentence), 1, -1)
        if (end == len(sentence) or sentence[end].opens) and sentence[end - 1].norm == claimed[-1].norm
    )
    starts = [at for at, word in enumerate(sentence) if word.norm == claimed[0].norm][:_MOST]
    for end in islice(ends, _MOST):
        behind = _alike(sentence[end - 1 :: -1] if end else (), claimed[:last:-1])
        for start in starts:
            ahead = min(_alike(sentence[start:], claimed), size - 1)
            stop = end - size + ahead
            if last < ahead and size - ahead <= behind and start + ahead < stop:
                left_out = sentence[start + ahead : stop]
                if _is_adjunct(claimed[ahead - 1], left_out):
                    yield (*sentence[: start + ahead], *sentence[stop:])


def _alike(words: Sequence[Word], others: Sequence[Word]) -> int:
    pairs = zip(words, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].norm == pair[1].norm, pairs))


def _is_adjunct(before: Word, words: Sequence[Word]) -> bool:
    """Return whether the words are one phrase that says where, whence or to whom."""
    signs = "".join(word.norm for word in words)
    return (
        signs[-1] in _PARTICLES
        and not _NO_ADJUNCT.search(signs)
        and not any(word.is_value or word.negates for word in words)
        and not any(word.opens for word in words[1:])
        and (
            words[0].opens
            or (before.norm in (*_PARTICLES, "て") and all(_NAMES_AND_PARTICLES.match(sign) for sign in signs))
        )
    )


def _clauses(sentence: Sequence[Word], claimed: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield the clauses before the last, which has the ending of all: ``払い`` as ``払った`` before another past."""
    said = "".join(word.norm for word in claimed[-8:])
    for at in range(2, len(sentence)):
        stem = sentence[at - 1].norm
        if not sentence[at].opens or stem not in _STEMS or said[-1] not in "たすだいるうくぐつぬぶむ":
            continue
        rest = "".join(f"{'、' if word.opens else ''}{word.norm}" for word in sentence[at:])
        ending = next((form for form in _forms(stem, rest) if said.endswith(form)), "")
        if ending and not _UNSURE.search(rest):
            yield (*sentence[: at - 1], *claimed[-len(ending) :])


def _forms(stem: str, rest: str) -> list[str]:
    """Return the forms that a verb's stem has in the place of the last verb."""
    for polite in ("ました", "ます"):
        if rest.endswith(polite):
            return [stem + polite]
    past = [f"{stem}た", _PAST.get(stem, f"{stem}た")]
    if rest.endswith(("てください", "でください")):
        return [f"{form[:-1]}{'て' if form[-1] == 'た' else 'で'}ください" for form in past]
    if rest.endswith(("た", "だ")):
        return past
    return [f"{stem}る", _PRESENT.get(stem, f"{stem}る")] if rest.endswith(_VERBS) else []
