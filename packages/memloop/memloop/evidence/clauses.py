"""What a sentence of Chinese, Japanese or Korean says in fewer words.

An English statement may end before a sentence does: *it opens at nine* of *it opens at nine and has a garden*. In
Japanese and Korean a clause before another has another ending, ``500円を払い、帰った`` for ``500円を払った``. In all
three a statement may leave out what stands between the topic and another clause, in Japanese a phrase before the verb.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice, product, takewhile
from os.path import commonprefix
from typing import Final

from memloop.evidence.words import Word

_MOST: Final = 8
"""Shorter sentences that are tried of one, and places where one may begin."""
_MOST_WORDS: Final = 6
"""Words of the longest ending."""
_STEMS: Final = "じいきぎしちびみりえけげせぜてねべめれ"
_JAPANESE: Final = (
    "払い 払う 払った/立ち 立つ 立った/走り 走る 走った/住み 住む 住んだ/飛び 飛ぶ 飛んだ/書き 書く 書いた/泳ぎ 泳ぐ 泳いだ"
    "/し する/話し 話す/行き 行った/払って 払う 払います 払いました/立って 立つ 立ちます 立ちました/走って 走る 走ります"
    " 走りました/住んで 住む 住みます 住みました/飛んで 飛ぶ 飛びます 飛びました/書いて 書く 書きます 書きました/見て 見る"
    " 見た 見ます 見ました/住んで 住んだ/して する/おり いる いた います いました/本で 本だ 本です 本だった 本でした"
    "/で である であった/高く 高い 高かった/あり ある/"
) + "/".join(f"{sign} {sign}た {sign}る {sign}ます {sign}ました" for sign in _STEMS)
_KOREAN: Final = (
    "만들고 만든다 만듭니다/하고 했다 했습니다/모이고 모였다 모였습니다/세우고 세웠다 세웠습니다/보고 봤다 봤습니다"
    "/되고 됐다 됐습니다/모여 모인다 모입니다/해 한다 합니다/가 갔다 갔습니다 간다/해 했다 했습니다/서 섰다 섰습니다"
    "/여 였다 였습니다/와 왔다 왔습니다/워 웠다 웠습니다/돼 됐다 됐습니다/인데 이다 입니다/으로 이다 입니다"
)
_BEFORE_ENDINGS: Final = "고 며 으며 니 으니 오니 지만 면서 으면서 는데 나 으나 서"
_ENDINGS: Final = (
    "\u11ab다 는다 다 \u11b8니다 습니다 었다 았다 \u11bb다 었습니다 았습니다 \u11bb습니다"  # ㄴ, ㅂ and ㅆ below a vowel
)
_PAST: Final = re.compile(r"(?:た|[んい]だ|" + unicodedata.normalize("NFD", "\u11bb(?:다|습니다))$"))
_HAS_TENSE: Final = re.compile("おり$|있|" + unicodedata.normalize("NFD", "\u11bb|니$|\u11ab데$"))
"""An ending that says when by itself, or that gives a reason: it is no part of what follows."""
_UNSURE: Final = re.compile(
    r"[えけげせてねべめれ]ば|たら|なら|場合|と[、言話述語説思考伝主発報訴見いさみ]|な[いか]|ません|予定|可能|恐れ|見込|見通|方針|計画"
    r"|つもり|はず|らし|よう|たい|かも|もし|こと|[ずぬ、]$"
    r"|^(?:있|싶|않|못|말|버[리렸]|보[인고았]|주[었고]|드[리렸]|나서|놓|두었|내[고었]|지[는 ])"
    r"|(?:예정|계획|방침|전망|것|수[있없]|듯|려고|[다라]고|않|못하|아니|싶)[^면은는]{0,8}$"
)
"""What a last clause says of the ones before it, too: a condition, a report, a plan."""
_SAID_BY_OTHERS: Final = re.compile(r"(?:[다라][고는]|듯)\S{0,8}$|^(?:있|싶|않|못)|と[、言話述語説思考伝主発報訴見]|らし|よう")
_NO_ADJUNCT: Final = re.compile(r"[はがもてとばなずぬ]|[んい]で")
"""A subject, a clause, a condition or a negation in a phrase that is left out."""
_PARTICLES: Final = frozenset("にでをへらり")
"""Signs in which phrases end that are neither subject nor topic: ``から``, ``まで`` and ``より`` too."""
_NAMES_AND_PARTICLES: Final = re.compile(r"[^\u3040-\u309fー]|[のにでをへからまより]")
_NO_CLAUSE: Final = re.compile(
    r"[はがもばずぬ]|な[いか]|たら|なら|場合|[은는이가도면]|如果|若|要是|除非|否则|只要|但|据|称|计划|预计|拟|可能|将|[的と]$|と、"
)
"""A subject, a condition or a negation in clauses that are left out."""
_CLAUSE: Final = re.compile(
    rf".*(?:[{_STEMS}くで]|고|며|서|해|지만)$"
    r"|(?!.*[ぁ-ん가-힣])(?:0|[高宽长厚深重约占共含售自于](?=0|地)|[今去明现][年]|年[仅满已]?(?=0)|全[长高宽]|总[长高重投造面建]|共[计设]"
    r"|[约已曾均在由从为是]|占地|面积|藏书|净利|营收|住户|体温|售价|造价|价格|投资|退休|毕业|出生|生于|历时|晚点|.了)"
)
"""How a clause without a subject ends in Japanese and Korean, and begins in Chinese; values are 0."""

_KANA_OR_HANGUL: Final = re.compile(r"[ぁ-ん가-힣]")


def _letters(text: str) -> str:
    """Return a text with the letters of Korean signs as signs of their own: a vowel and an ending make one."""
    return unicodedata.normalize("NFD", text) if max(text, default="") >= "가" else text


def _pairs() -> Iterator[tuple[str, str]]:
    for row in f"{_JAPANESE}/{_KOREAN}".split("/"):
        one, *others = map(_letters, row.split())
        for other in others:
            shared = min(len(commonprefix((one, other))), len(one) - 1)
            yield one[shared:], other[shared:]
            if other.endswith(("た", "だ")):
                yield one[shared:], f"{other[shared:-1]}{'て' if other[-1] == 'た' else 'で'}ください"
    ends = [unicodedata.normalize("NFD", end) for end in _ENDINGS.split()]
    yield from product((*map(_letters, _BEFORE_ENDINGS.split()), *ends), ends)


_FORMS: Final = frozenset(_pairs())
"""An ending before another clause, and one of a statement."""


def shorter(sentence: Sequence[Word], claimed: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield what the sentence says in its clauses, and without what may be left out, as claimed."""
    for said in islice(_clauses(sentence, claimed), _MOST):
        yield said
        yield from islice(_without_a_part(said, claimed), _MOST)


def _clauses(sentence: Sequence[Word], claimed: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield the sentence up to the end of a clause, in the ending that is claimed."""
    tails = ["".join(word.norm for word in claimed[-size:]) for size in range(1, _MOST_WORDS + 1)]
    for end in range(len(sentence), 1, -1):
        if end < len(sentence) and not sentence[end].opens and not _is_apart(*sentence[end - 1 : end + 1]):
            continue
        if sentence[end - 1].norm == claimed[-1].norm:
            yield sentence[:end]
            continue
        rest = "".join(f"{'、' if word.opens else ''}{word.norm}" for word in sentence[end:])
        yield from islice(_as_claimed(sentence[:end], claimed, tails, rest), 1)


def _as_claimed(
    clause: Sequence[Word], claimed: Sequence[Word], tails: Sequence[str], rest: str
) -> Iterator[Sequence[Word]]:
    for mine, (size, tail) in product(range(1, 4), enumerate(tails, 1)):
        ending = "".join(word.norm for word in clause[-mine:])
        if mine >= len(clause) or size >= len(claimed) or clause[-mine - 1].norm != claimed[-size - 1].norm:
            continue
        if is_form_of(ending, tail) and _holds_for_all(ending, tail, rest or ending):
            yield (*clause[:-mine], *claimed[-size:])


def is_form_of(ending: str, claimed: str) -> bool:
    """Return whether a word has one ending before another clause, and the other one in a statement."""
    one, other = _letters(ending), _letters(claimed)
    same = len(commonprefix((one, other)))
    return any((one[at:], other[at:]) in _FORMS for at in range(max(0, same - 1), same + 1))


def _is_apart(before: Word, word: Word) -> bool:
    """Return whether a Korean word ends before this one."""
    return word.is_apart and before.norm >= "가"


def _holds_for_all(ending: str, claimed: str, rest: str) -> bool:
    """Return whether a clause is said by itself, in the tense of what follows, and in its mood."""
    if rest.startswith(("、現在", "、今")) and claimed.endswith(("た", "だ")):
        rest = ""
    is_past = _PAST.search(_letters(claimed)) is not None
    has_tense = _HAS_TENSE.search(_letters(ending)) is not None or claimed in ("이다", "입니다")
    return (
        (rest.startswith("、") or not ending.endswith("로"))
        and (has_tense or not rest or is_past == (_PAST.search(_letters(rest)) is not None))
        and claimed.endswith("ください") == rest.endswith("ください")
        and not (_SAID_BY_OTHERS if has_tense else _UNSURE).search(rest)
    )


def _without_a_part(said: Sequence[Word], claimed: Sequence[Word]) -> Iterator[Sequence[Word]]:
    size = len(claimed)
    behind = _alike(said[::-1], claimed[::-1])
    for start in [at for at, word in enumerate(said) if word.norm == claimed[0].norm][:_MOST]:
        ahead = _alike(said[start:], claimed)
        for head in range(min(ahead, size - 1), max(0, size - behind - 1), -1):
            stop = len(said) - size + head
            if start + head < stop and _may_be_left_out(said, start + head, stop):
                yield (*said[: start + head], *said[stop:])


def _alike(words: Sequence[Word], others: Sequence[Word]) -> int:
    pairs = zip(words, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].norm == pair[1].norm, pairs))


def _may_be_left_out(said: Sequence[Word], start: int, stop: int) -> bool:
    """Return whether it is one phrase that says where, whence or to whom, or clauses of the topic before it."""
    before, words, behind = said[start - 1], said[start:stop], said[stop]
    if any(word.negates for word in words):
        return False
    signs = "".join(word.norm for word in words)
    if before.norm in ("は", "은", "는", "年", "月", "日") or not _KANA_OR_HANGUL.search("".join(word.norm for word in said)):
        clauses = "".join(f"{'、' if word.opens else ''}{0 if word.is_value else word.norm}" for word in words)
        if (behind.opens or _is_apart(words[-1], behind)) and not _NO_CLAUSE.search(clauses):
            return all(map(_CLAUSE.match, clauses.removeprefix("、").split("、")))
    return (
        signs[-1] in _PARTICLES
        and not _NO_ADJUNCT.search(signs)
        and not any(word.is_value for word in (*words, *said[stop:]))
        and not any(word.opens for word in words[1:])
        and (
            words[0].opens
            or (before.norm in (*_PARTICLES, "て") and all(_NAMES_AND_PARTICLES.match(sign) for sign in signs))
        )
    )
