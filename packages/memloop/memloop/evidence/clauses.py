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

from memloop.evidence.units import OF_TIME
from memloop.evidence.words import Word

_MOST: Final = 8
"""Shorter sentences that are tried of one, and places where one may begin."""
_MOST_SIGNS, _MOST_WORDS = 3, 6
"""Words of the longest ending before another clause, and of the longest one of a statement."""
_SHORT_STEMS: Final = "じいきぎしちびみりえけげせぜてねべめれ"
_VERBS: Final = (
    "払い 払う 払った/立ち 立つ 立った/走り 走る 走った/住み 住む 住んだ/飛び 飛ぶ 飛んだ/書き 書く 書いた"
    "/泳ぎ 泳ぐ 泳いだ/話し 話す 話した/し する した/行き 行く 行った/おり いる いた/おり います いました/"
) + "/".join(f"{stem} {stem}る {stem}た" for stem in _SHORT_STEMS)
"""Forms of Japanese verbs before another clause, now and in the past."""
_OTHERS: Final = (
    "で だ です である だった でした であった/く い かった/만들고 만든다 만듭니다/하고 했다 했습니다/모이고 모였다"
    " 모였습니다/세우고 세웠다 세웠습니다/보고 봤다 봤습니다/되고 됐다 됐습니다/모여 모인다 모입니다/해 한다 합니다"
    " 했다 했습니다/가 갔다 갔습니다 간다/서 섰다 섰습니다/여 였다 였습니다/와 왔다 왔습니다/워 웠다 웠습니다/돼 됐다"
    " 됐습니다/인데 이다 입니다/으로 이다 입니다"
)
_KOREAN: Final = "고 며 으며 니 으니 오니 지만 면서 으면서 는데 나 으나 서"
_KOREAN_ENDS: Final = "\u11ab다 는다 다 \u11b8니다 습니다 었다 았다 \u11bb다 었습니다 았습니다 \u11bb습니다"
"""Endings of plain statements, some with n, p and ss below the vowel before them."""
_PAST: Final = re.compile(r"(?:た|[んい]だ|" + unicodedata.normalize("NFD", "\u11bb(?:다|습니다))$"))
_HAS_TENSE: Final = re.compile(unicodedata.normalize("NFD", "있|\u11bb|니$|\u11ab데$") + "|おり$")
"""An ending that says when by itself, or that gives a reason: it is no part of what follows."""
_SAID: Final = r"と[、言話述語説思考伝主発報訴見いさみ]|らし|よう|[다라][고는]\S{0,8}$|듯\S{0,8}$|^(?:있|싶|않|못)"
_SAID_BY_OTHERS: Final = re.compile(_SAID)
_UNSURE: Final = re.compile(
    rf"{_SAID}|[えけげせてねべめれ]ば|(?<!^、終え)(?<!^、終わっ)たら|なら|場合|な[いか]|ません|予定|可能|恐れ|見込|見通|方針"
    r"|計画|つもり|はず|たい|かも|もし|こと|[ずぬ、]$"
    r"|^(?:말|버[리렸]|보[인고았]|주[었고]|드[리렸]|나서|놓|두었|내[고었]|지[는 ])"
    r"|(?:예정|계획|방침|전망|것|수[있없]|려고|않|못하|아니|싶)[^면은는]{0,8}$"
)
"""What a last clause says of the ones before it, too: a condition (but for *when that is done*), a report, a plan."""
_NO_ADJUNCT: Final = re.compile(r"[はがもてとばなずぬ]|[んい]で")
"""A subject, a clause, a condition or a negation in a phrase that is left out."""
_PARTICLES: Final = frozenset("にでをへらり")
"""Signs in which phrases end that are neither subject nor topic: ``から``, ``まで`` and ``より`` too."""
_NAMES_AND_PARTICLES: Final = re.compile(r"[^\u3040-\u309fー]|[のにでをへからまより]")
_TOPIC: Final = frozenset("は은는年月日")
"""What a topic or a time ends in, behind which clauses may be left out."""
_NO_CLAUSE: Final = re.compile(
    r"[はがもばずぬ]|な[いか]|たら|なら|場合|と、|[と的]$|[은는이가도면]|如果|若|要是|除非|否则|只要|但|据|称|计划|预计"
    r"|拟|可能|将"
)
"""A subject, a condition or a negation in clauses that are left out."""
_CLAUSE: Final = re.compile(
    rf".*(?:[{_SHORT_STEMS}くで]|고|며|서|해|지만)$"
    r"|(?!.*[ぁ-ん가-힣])(?:0|[高宽长厚深重约占共含售自于](?=0|地)|[今去明现]年|年[仅满已]?(?=0)|全[长高宽]"
    r"|总[长高重投造面建]|共[计设]|[约已曾均在由从为是]|占地|面积|藏书|净利|营收|住户|体温|售价|造价|价格|投资|退休|毕业"
    r"|出生|[生定]于|历时|晚点|.了|..[了近满已逾超]?0[多余]?[天年周]$)"
)
"""How a clause without a subject ends in Japanese and Korean, and begins in Chinese; values are 0, times 0天."""
_KANA_OR_HANGUL: Final = re.compile(r"[ぁ-ん가-힣]")


def _letters(text: str) -> str:
    """Return a text with the letters of Korean signs as signs of their own: a vowel and an ending make one."""
    return unicodedata.normalize("NFD", text) if max(text, default="") >= "가" else text


def _alike(ones: Sequence[str], others: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ones, others, strict=False)))


def _pairs() -> Iterator[tuple[str, str]]:
    """Yield an ending before another clause and one of a statement, without what both begin with."""
    rows = [(row.split()[:1], row.split()[1:]) for row in map(_letters, _OTHERS.split("/"))]
    for stem, now, past in (row.split() for row in _VERBS.split("/")):
        bound = past[:-1] + ("て" if past[-1] == "た" else "で")
        rows.append(([stem, bound], [now, past, f"{stem}ます", f"{stem}ました", f"{bound}ください"]))
    for firsts, ends in rows:
        for first, end in product(map(_letters, firsts), map(_letters, ends)):
            shared = min(_alike(first, end), len(first) - 1)
            yield first[shared:], end[shared:]
    korean = unicodedata.normalize("NFD", _KOREAN_ENDS).split()
    yield from product((*map(_letters, _KOREAN.split()), *korean), korean)


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
        and not (_SAID_BY_OTHERS if has_tense else _UNSURE).search(rest)
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
    if (before.norm in _TOPIC or is_chinese) and (behind.opens or _is_apart(words[-1], behind)):
        clauses = signs.removeprefix("、").split("、")
        if not _NO_CLAUSE.search(signs) and all(map(_CLAUSE.match, clauses)):
            return True
    return (
        signs[-1] in _PARTICLES
        and not _NO_ADJUNCT.search(signs)
        and not any(word.is_value for word in (*words, *said[to:]))
        and "、" not in signs[1:]
        and (signs[0] == "、" or (before.norm in (*_PARTICLES, "て") and all(map(_NAMES_AND_PARTICLES.match, signs))))
    )
