r"""The strict scores, used as rewards: the last ``\boxed`` near the reply's end must equal, or contain, a gold answer.

``strict_contains`` wants the words of the gold answer; ``published_contains``, as MemReread was trained, its letters,
so that ``\boxed{unknown}`` contains a gold ``no``.

Case, blanks, line breaks and the LaTeX of numbers do not count; articles, punctuation, ``\text{}`` and a bare ``%`` or
``$`` do. Source: the training rewards of MemAgent (arXiv 2507.02259; equal) and MemReread (arXiv 2605.10268; contain),
with the normal form of the hendrycks_math scorer.

RULER has a score for tasks with several references.
"""

import re
from collections.abc import Callable, Iterable, Sequence

_BOX = re.compile(r"\\boxed(?![a-zA-Z])")
_FRAME = re.compile(r"\\fbox(?![a-zA-Z])")


def last_boxed(text: str) -> str | None:
    r"""What stands in the text's last ``\boxed``, or in its last ``\fbox`` when it has no ``\boxed``; None without one.

    Braces are matched, escaped ones skipped; a box that never closes is no box. ``\boxed 42`` without braces reaches
    to the next ``$`` or the end of its line. Source: the hendrycks_math scorer's conventions.
    """
    marks = list(_BOX.finditer(text)) or list(_FRAME.finditer(text))
    if not marks:
        return None
    rest = text[marks[-1].end() :]
    content = rest.lstrip()
    if not content.startswith("{"):
        bare = re.match(r"[ \t]+([^$\n]+)", rest)
        return bare[1].strip() if bare else None
    depth = 0
    for mark in re.finditer(r"\\.|[{}]", content, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0 and mark[0] == "}":
            return content[1 : mark.start()]
    return None


_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts whose words do not stand between blanks, or take endings without one."""
_LETTER = rf"[^\W{_UNSPACED}]"


def stands_in(part: str, text: str) -> bool:
    """Return whether ``part`` stands in ``text``, and no word or number goes on at its ends; empty: never."""
    if not part:
        return False
    before = rf"(?<!{_LETTER})" if re.match(_LETTER, part) else ""
    behind = rf"(?!{_LETTER})" if re.match(_LETTER, part[-1]) else ""
    if part[0].isdigit():
        before += r"(?<!(?<!\w)[-−])(?<!\d[.,])"
    if part[-1].isdigit():
        behind += r"(?![.,]\d)"
    return re.search(before + re.escape(part) + behind, text) is not None


TAIL_CHARS = 300

_DRESSING = re.compile(r"\\left|\\right|\^\\circ|\^\{\\circ\}|\\\$|\\%")
_FRACTION = re.compile(r"[td]frac")
_BARE_POINT = re.compile(r"(?<=[ {])\.")


def strict_score(reply: str, golds: Iterable[str]) -> float:
    """1.0 when the box in the last 300 characters equals a gold answer, else 0.0."""
    return same_answer(_boxed(reply), golds)


def strict_contains(reply: str, golds: Iterable[str]) -> float:
    """1.0 when the box in the last 300 characters contains the words of a gold answer, else 0.0."""
    said = " ".join(_plain(_boxed(reply)).split())
    return float(any(stands_in(" ".join(_plain(gold).split()), said) for gold in golds))


def published_contains(reply: str, golds: Iterable[str]) -> float:
    """1.0 when the box in the last 300 characters contains the letters of a gold answer, also within a word."""
    return _any(_boxed(reply), golds, lambda mine, gold: bool(gold) and gold in mine)


def same_answer(answer: str, golds: Iterable[str]) -> float:
    """1.0 when an answer without its box equals a gold answer, by the same normal form, else 0.0."""
    return _any(answer, golds, lambda mine, gold: mine == gold)


def undress(text: str) -> str:
    """Return the normal form: lower case, without blanks, line breaks and the LaTeX of numbers."""
    return _plain(text.replace("\n", "")).replace(" ", "")


def _plain(text: str) -> str:
    plain = text.lower().replace(r"\!", "").replace("\\\\", "\\")
    plain = _DRESSING.sub("", _FRACTION.sub("frac", plain))
    return _BARE_POINT.sub("0.", plain)


def _boxed(reply: str) -> str:
    return last_boxed(reply[-TAIL_CHARS:]) or ""


def _any(answer: str, golds: Iterable[str], fits: Callable[[str, str], bool]) -> float:
    mine = undress(answer)
    return float(bool(mine) and any(fits(mine, undress(gold)) for gold in golds))


_PHRASE = "the answer is"
_END_MARKS = ("<｜Assistant｜>", "<｜end▁of▁sentence｜>")


def answer_in_words(text: str) -> str | None:
    """What follows the text's last ``the answer is``, without asterisks and full stops around it; None without one."""
    _, phrase, after = text.replace("*", "").rpartition(_PHRASE)
    if not phrase:
        return None
    for mark in _END_MARKS:
        after = after.replace(mark, "")
    return after.strip().strip(".").strip()


def recall_of_references(prediction: str, references: Sequence[str]) -> float:
    """Return the share of references in the prediction, in any case. Raises ValueError without references."""
    if not references:
        raise ValueError("an item without references has no score")
    answer = prediction.lower()
    return sum(stands_in(reference.lower(), answer) for reference in references) / len(references)
