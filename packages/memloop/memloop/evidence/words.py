"""The words of a statement or a sentence, as matching compares them."""

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache

from memloop.evidence.function_words import FUNCTION_WORDS, LIGHT, NEGATIONS
from memloop.evidence.numerals import may_be
from memloop.evidence.units import quantity
from memloop.evidence.values import Value, values_in

_WORD = re.compile(
    r"(?<!\w)[A-Z]{1,3}[+-](?![\w(])|\([A-Za-z]\)|[^\W\d_]{1,3}\d+(?:\.\d+)+\w*|\d+\w*|s'élève à|asciende a|ammonta a"
    r"|uppgår till|ではなく|ではな(?=[いか])|ではありません|じゃな(?=[いか])|でした|である|であった|だった|です|とする"
    r"|となる|だ(?= ?(?:[。、,]|$))|아니(?=[다라며었])|(?:(?<=[가-힣])|(?<=[\d\w%)] ))(?:의|은|는|이|가|이다|입니다"
    r"|이며|이고|이었다|였다)(?![가-힣])|(?<=[가-힣])(?:[하되]며|[하되]고|한다|된다|합니다|됩니다|했다|됐다|했으며"
    r"|됐으며|했습니다|됐습니다|으며|다|습니다)(?![가-힣])|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
    r"|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af](?:[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|['’](?=\w))*"
)
_SIGNS = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_SIGN = re.compile(_SIGNS)


def _half(found: re.Match[str]) -> str:
    """``两年半`` as ``两点五年``."""
    return f"{found[1]}{'.5' if found[1].isascii() else '点五'}{found[2]}"


_BROKEN = re.compile(r"\u00ad\s*|(?<=[^\W\d_])[-‐]\s*\n\s*(?=[^\W\d_A-Z])")
"""Soft hyphens, and a word that is cut at a line's end."""
_PART_OF_UNIT = re.compile(r"\b((?:[Dd]rei)?[Vv]iertel)(?=stunde|liter|kilo|jahr|pfund)")
_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_POWER = re.compile(r"(?<=\d)(?=[⁻⁰¹²³⁴-⁹])")
_BESIDE_SIGN = re.compile(rf"(?<={_SIGNS})(?=(?!{_SIGNS})\S)|(?<=\S)(?<!{_SIGNS})(?={_SIGNS})")
_BESIDE_DIGITS = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (r"\b(?i:version )?[vV]\.?\s?(?=\d+\.\d)", "version "),
        (r"(?<=[\dm])(?<!\b0)\s?[x×]\s?(?=\d)", " × "),  # 120x60, 3 m x 4 m
        (r"(?<=\d)(?:[‐‑‒–—ー]|\s[–—]\s)(?=\d)", "-"),
        (r"(?<=\d),[-–—]+(?!\d)", ""),
        (r"\+\s?/\s?-(?=\s?\d)", "±"),
        (r":(?<=\d:)(?<![:.,]\d:)(?<![:.,]\d\d:)(?<!\d{4}:)(?=\d(?![\d:.,]\d|\d|\s?[ap]\.?m))", "-"),  # 3:1
        (r"(?<=\d)'(?!s\b)[^\W\d_]{1,6}\b", ""),  # 14.30'da
        (r"(?<!\d):(?=\d)", ": "),
        (r"(?<=[a-zA-Z])[·⋅∙](?=[a-zA-Z])", ""),  # N·m
    )
)
_NO_MINUTES = "[间間钟鐘之の野岐割別類配母]"
"""What stands behind 分 that is no minute in Japanese."""
_FEW, _SOME = "[一二三四五六七八九]", "[一二两兩三四五六七八九十]"
_MEASURE = (
    "(?:[a-zA-Z%万億兆倍度割秒]|時間(?!目)|平方|メートル|キロ|センチ|ミリ|トン|グラム|リットル|ヘクタール|パーセント"
    "|ポイント)"
)
"""What stands behind ``二・五`` where that is 2.5, and not two and five."""
_IN_SIGNS = tuple(
    (needed, re.compile(pattern), written)
    for needed, pattern, written in (
        (
            "半반",
            (
                rf"((?<!\d)\d{{1,2}}|{_SOME}{{1,3}}) ?(个|個|年|天|斤|里|亩|時間|小时|小時|个月|個月|[かカヶ]月|년|개월"
                r"|시간) ?[半반](?![径額额分数导期ばん])"
            ),
            _half,
        ),
        ("半반", r"(?<![\d一二两兩三四五六七八九十个個点點時时시])[半반] ?(?=[个個]?(?:小时|小時|時間|시간))", "0.5"),
        (
            "分분",
            r"(?<=小时|小時|時間|시간) ?([\d一二三四五十일이삼사오육칠팔구십]{1,3}) ?[分분](?![钟鐘之の의])",
            r" \1分钟",
        ),
        (
            "分",
            (
                rf"(?<![\d.時点度割] )(?<![\d.時点度割第{_SOME[1:-1]}])(?!十 ?分)(\d{{1,3}}|{_SOME}{{1,3}}) ?分"
                rf"(?!{_NO_MINUTES})(?=[^。\n]{{0,60}}[ぁ-ん])"
            ),
            r"\1分間",
        ),
        ("분", r"(?<![\d.시도] )(?<![\d.시도제])(\d{1,3}) ?분(?! ?[의기할])", r"\1分間"),
        ("度도", r"(?<!\d)(3[4-9]|4[0-2]) ?[度도] ?([1-9])(?: ?[分분부])?(?![\d.目回度割点])", r"\1.\2度"),
        ("度", rf"(?<!十)([三四]十{_FEW}?) ?度 ?({_FEW})(?: ?分)?(?![目回度割点十百])", r"\1点\2度"),
        ("米", r"(?<![\d.])([12]) ?米 ?(\d\d?)(?![\d.,])", r"\1.\2米"),
        ("米", rf"(?<!{_SOME})([一二]) ?米 ?({_FEW}{{1,2}})(?!{_SOME})", r"\1点\2米"),
        ("・", rf"(?<=\d) ?・ ?(?=\d{{1,4}} ?{_MEASURE})", "."),
        ("・", rf"(?<=[零十百千{_FEW[1:-1]}]) ?・ ?(?=[零{_FEW[1:-1]}]{{1,4}} ?{_MEASURE})", "点"),
        ("△▲", r"[△▲] ?(?=\d[^\n가-힣]{0,60}[ぁ-んァ-ン円])", "-"),
        ("也", r"(?<=[円圓元]) ?也", ""),
        ("円圓", r"(?<![\u3040-\u9fff])金 ?(?=[\d,一-龥]{1,20}[円圓])", ""),
        ("원", "원정(?= ?[은을의이에,.]|$)", "원"),
        ("块塊", rf"(?<![\d.])(\d{{1,4}}|[{_SOME[1:-1]}百]{{1,5}}) ?[块塊] ?(\d|{_FEW})(?![\d.个十百钱])", r"\1点\2元"),
        ("比対", rf"[比対](?<=[\d{_SOME[1:-1]}].) ?(?=(?:\d{{1,3}}|{_SOME}|零)(?![\d.]|{_SOME}))", "∶"),
        ("대", r"대(?<=\d.|\d ) ?(?=\d{1,3}(?:로|으로|의| ))", "∶"),
        ("至到", rf"[至到](?<={_SOME}.) ?(?={_SOME}{{1,3}}(?! ?[年月日点點時时]|{_SOME}))", "∶"),
        (
            "至到",
            r"(?<![\d./:-])(\d{1,4}(?:\.\d{1,4})?) ?[至到] ?(?=\d{1,4}(?:\.\d{1,4})?(?![\d./:]| ?[年月日点點時时]))",
            r"\1-",
        ),
        (
            "至到",
            (
                r"[至到](?<=[点點时時半分\d].) ?(?=(?:[上下中]午|[早晚]上?|傍晚|凌晨|次日)? ?"
                rf"(?:\d{{1,2}}|{_SOME}{{1,3}}) ?(?:[点點时時]|:\d\d))"
            ),
            "-",
        ),
        ("秒", r"(?<!\d)(\d{1,2}) ?秒 ?(\d\d)(?!\d)", r"\1.\2秒"),
        ("秒", r"([一二三四五六七八九]) ?秒 ?([零一二三四五六七八九]{2})(?![零一二三四五六七八九十])", r"\1点\2秒"),
        ("币幣", r"人民[币幣](?= ?[\d一二两三四五六七八九十壹贰叁肆伍陆柒捌玖])", ""),
        (
            "每",
            r"每(小时|分钟|秒) ?(\d[\d.,]{0,9}|[一二三四五六七八九十百]{1,5}) ?(公里|千米|米|升|毫升)",
            r"\2\3/\1",
        ),
        ("速속", r"(?:[時时]速|시속) ?(\d[\d.]{0,9}) ?(?:公里|千米|キロ(?:メートル)?|킬로미터|km)(?!/)", r"\1km/h"),
    )
)
"""Ways of Chinese, Japanese and Korean to write values, after signs that each has, and how they are compared."""
_DIGIT = re.compile(r"\d")
_HOURS = re.compile(r"\d ?h|[^\W\d] (?:heure|hora)", re.IGNORECASE)
_OPENING = re.compile(r"[,、(]")
_BEFORE_SIGNS = "\u3000"
_ROMAN = re.compile(r"(?=[IVXLC]{2})(?P<c>C{0,3})(?P<x>XC|XL|L?X{0,3})(?P<i>IX|IV|V?I{0,3})(?:e|è|º|ª|th|er)?")
_ROMANS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_LABELED = (
    "war type phase class stage grade level part chapter book volume act scene section article annex appendix title "
    "group schedule table figure vitamin hepatitis teil kapitel typ klasse stufe band abschnitt anhang artikel partie "
    "chapitre livre annexe tome classe parte capítulo tipo fase clase libro sección artículo anexo título siglo "
    "capitolo sezione articolo allegato titolo secolo seção artigo século livro hoofdstuk deel bijlage del część "
    "rozdział глава часть том раздел"
)
"""What ``I`` numbers."""
_LONGEST_LABEL = 24
_POSSESSIVE = re.compile(r"'(?:s|y?[aeıiuü]|n?[ıiuü]n|[dt][ae]n?|[dt][ıiuü]r)?$")
"""``Ann's``, and the endings of Turkish names: ``Kaya'nın``."""
_ELIDED = re.compile(r"^(?:d|l|un|dell|all|dall|nell|sull)'(?=\w)", re.IGNORECASE)
_ENDINGS = ("ing", "ed", "es", "s", "e")
_LEAST_STEM = 3
_LEAST_PROBE = 4


@dataclass(frozen=True, slots=True)
class Word:
    """``norm`` is the word in lower case, ``stem`` without its ending; ``anchor`` says that it must match exactly.

    A value has its one form in both, and the ``unit`` that stands with it; it may be ``spelled`` as a word. ``maybe``
    is the number that a word may be, or nothing. ``asked``: a question says the word, and no statement. ``opens``: a
    comma or a bracket stands before it. ``is_joined``: a Korean word that stands in one with the word before it.
    ``quantity``: a value that has other units, as all that are equal are.
    """

    norm: str
    stem: str
    anchor: bool
    unit: str = ""
    is_value: bool = False
    spelled: bool = False
    maybe: str = ""
    asked: bool = False
    opens: bool = False
    is_joined: bool = False
    quantity: str = ""

    @property
    def probe(self) -> str:
        """How it begins in a folded text, in all its forms; empty for a value, which may be written in another way."""
        return "" if self.is_value or self.maybe else folded(self.stem)[: max(_LEAST_PROBE, len(self.stem) - 2)]

    @property
    def as_number(self) -> "Word":
        """The number that it may be."""
        return replace(self, norm=self.maybe, stem=self.maybe, anchor=True, is_value=True, spelled=True)

    @property
    def kind(self) -> str:
        """What a value counts or that it is a time of day; empty where neither is known."""
        return self.quantity.rpartition(" ")[2] or self.unit or (":" if self.is_value and ":" in self.norm else "")

    @property
    def is_sign(self) -> bool:
        """Whether it is one sign of Chinese, Japanese or Korean."""
        return _SIGN.fullmatch(self.norm) is not None

    @property
    def content(self) -> bool:
        """Whether it says something by itself."""
        return self.norm not in FUNCTION_WORDS and not self.negates and not self.is_light

    @property
    def is_light(self) -> bool:
        """Whether a text may lack it: *the*, *is*, in languages besides English."""
        return self.norm in LIGHT and not self.anchor

    @property
    def negates(self) -> bool:
        """Whether it turns a statement round."""
        return self.norm in NEGATIONS or self.norm.endswith(("n't", "n’t"))


def folded(text: str) -> str:
    """Return the text in the form in which ``norm`` and ``stem`` of words are searched."""
    return plain(text).casefold()


def plain(text: str) -> str:
    """Return the text with words whole, widths and ligatures resolved, and fractions and powers beside their number."""
    apart = _POWER.sub("^", _FRACTION.sub(" ", _BROKEN.sub("", text))).replace("ºC", "°C").replace("ºF", "°F")
    level = (
        unicodedata.normalize("NFKC", apart).replace("⁄", "/").replace("〇", "零").replace("−", "-").replace("’", "'")
    )
    for pattern, written in _BESIDE_DIGITS if _DIGIT.search(level) else ():
        level = pattern.sub(written, level)
    level = _PART_OF_UNIT.sub(r"\1 ", level) if "iertel" in level else level
    if max(level, default="") <= _BEFORE_SIGNS:
        return level
    signs = frozenset(level)
    for needed, way, other in _IN_SIGNS:
        if not signs.isdisjoint(needed):
            level = way.sub(other, level)
    return _BESIDE_SIGN.sub(" ", level)


def words_of(text: str, *, commas: bool = False) -> tuple[Word, ...]:
    """Return the words in order. Values, names (capitals that are no function words) and CJK signs are anchors.

    ``commas`` says that decimals have commas.
    """
    text = plain(text)
    words: list[Word] = []
    start = end = 0
    for value in (*values_in(text, commas=commas), Value(len(text), len(text), "", "")):
        for found in _WORD.finditer(text, start, value.start):
            word = _word(found[0], is_first=not words)
            word = replace(word, norm=found[0], stem=found[0], anchor=True) if _is_label(found) else word
            opens = found.start() > end + 1 and _OPENING.search(text, end, found.start()) is not None
            is_joined = found.start() == end and word.norm >= "가"
            words.append(replace(word, opens=opens, is_joined=is_joined) if opens or is_joined else word)
            end = found.end()
        if value.norm:
            opens = _OPENING.search(text, end, value.start) is not None
            # 2 h 30 is a time of day or lasts as long
            unit = value.unit or ("h" if ":" in value.norm and _HOURS.search(text, value.start, value.end) else "")
            words.append(
                Word(
                    value.norm,
                    value.norm,
                    anchor=True,
                    unit=value.unit,
                    is_value=True,
                    spelled=value.spelled,
                    opens=opens,
                    quantity=quantity(value.norm, unit),
                )
            )
        start = end = value.end
    return tuple(words)


def _is_label(found: re.Match[str]) -> bool:
    """Return whether ``A`` or ``I`` is no article and no pronoun: ``vitamin A``, ``Charles I``, ``part I``."""
    if found[0] not in ("A", "I"):
        return False
    if _SIGN.match(found.string, found.end() + found.string.startswith(" ", found.end())):
        return True  # A店
    before = found.string[: found.start()].rstrip()
    last = before[-_LONGEST_LABEL:].split()[-1:]
    return bool(last) and (
        last[0].casefold() in _LABELED.split()
        or (found[0] == "A" and last[0].islower())
        or (last[0].isalpha() and last[0].istitle() and last[0] != before)
    )


@lru_cache(maxsize=16_384)
def _word(raw: str, *, is_first: bool) -> Word:
    bare = _ELIDED.sub("", _POSSESSIVE.sub("", raw))
    norm = bare.casefold()
    is_capital = bare[:1].isupper()
    is_little = norm in FUNCTION_WORDS or (norm in LIGHT and (is_first or not is_capital))
    named = not is_little and (is_capital or any(sign.isdigit() for sign in bare) or _SIGN.fullmatch(bare) is not None)
    endings = (each for each in _ENDINGS if norm.endswith(each) and len(norm) - len(each) >= _LEAST_STEM)
    stem = norm.removesuffix(next(endings, ""))
    return Word(norm, stem, anchor=named, maybe=_roman(bare) or may_be(norm) or ("1" if norm in ("a", "an") else ""))


def _roman(word: str) -> str:
    if not (found := _ROMAN.fullmatch(word)):
        return ""
    numbers = [_ROMANS[sign] for sign in "".join(found.groups())]
    # A smaller one before a greater one is taken away
    return str(
        sum(-number if number < after else number for number, after in zip(numbers, [*numbers[1:], 0], strict=True))
    )
