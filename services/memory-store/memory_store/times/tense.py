"""Whether a sentence looks back or ahead: it decides which Friday "on Friday" is."""

import re
from typing import Final, Literal, TypeAlias

_AHEAD: Final = re.compile(
    r"\b(?:will|shall|going to|gonna|plan(?:s|ning)? (?:to|on|for)|hop(?:e|es|ing) to|want(?:s)? to|due"
    r"|upcoming|coming up|(?:am|is|are) (?:not )?\w+ing|deadline)\b|(?:'|\u2019)(?:ll|m going)\b|won(?:'|\u2019)t\b"
    r"|(?:'|\u2019)(?:re|s|m) (?:not )?\w+ing\b",
    re.IGNORECASE,
)
_IRREGULAR: Final = """
    was were had did went saw met got came took made gave told said thought found left felt kept began bought brought
    caught taught built sent spent lost won ran sang swam drank ate fell flew drove rode wrote spoke broke chose woke
    wore tore bore grew knew threw drew blew shook stood understood sat slept read heard held led fed fought paid laid
    sold stole froze rang sank shot shut hurt quit cut hit put let bit hid became born dreamt been gone seen done
    learnt burnt taken given
"""
_BACK: Final = re.compile(
    rf"\b(?:{'|'.join(_IRREGULAR.split())}|(?!(?:need|feed|seed|speed|indeed|hundred|breed|agreed|tired)\b)[a-z]{{2,20}}ed)\b",
    re.IGNORECASE,
)
_SENTENCE_END: Final = re.compile(r"[.!?\n](?=\s|$)")
_LOOKED_AT_CHARS: Final = 160


Tense: TypeAlias = Literal["past", "future"]


def tense(text: str, start: int, end: int, *, unmarked: Tense) -> Tense:
    """Return the tense of the sentence around a place in the text; ``unmarked`` if nothing in it shows one."""
    before = text[max(0, start - _LOOKED_AT_CHARS) : start]
    after = text[end : end + _LOOKED_AT_CHARS]
    *_, before = _SENTENCE_END.split(before)
    after, *_ = _SENTENCE_END.split(after, maxsplit=1)
    around = f"{before} {after}"
    if _AHEAD.search(around):
        return "future"
    return "past" if _BACK.search(around) else unmarked
