"""Dates and times of day, in one form however they are written: as the day, the month and the year, and in 24 hours.

Days and months are values of their own, so that ``in March 2024`` is found where the whole date stands. ``3/4/2024`` is
in April where the language of the text puts the day first; elsewhere it may be in March, and is compared as it stands.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from memloop.evidence.hanzi import DECIMALS, HOUR, NUMERAL, number_of
from memloop.evidence.number_words import FROM_TWO, ONE, TENS, VEINTI
from memloop.evidence.units import CURRENCIES, any_of

# fmt: off
_MONTHS: Final = {name: number for number, names in enumerate((
    ("january januar ocak ledna leden jänner janvier enero gennaio janeiro январь января январе januari stycznia "
     "styczeń"),
    ("february februar şubat února únor février febrero febbraio fevereiro февраль февраля феврале februari lutego "
     "luty"),
    "march märz mars marts mart března březen marzo março март марта марте maart marca marzec",
    "april nisan dubna duben avril abril aprile апрель апреля апреле kwietnia kwiecień",
    "may mai mayıs května květen mayo maggio maio май мая мае mei maj maja",
    "june juni haziran června červen juin junio giugno junho июнь июня июне czerwca czerwiec",
    "july juli temmuz července červenec juillet julio luglio julho июль июля июле lipca lipiec",
    "august ağustos srpna srpen août agosto август августа августе augustus augusti sierpnia sierpień",
    "september eylül září septembre septiembre settembre setembro сентябрь сентября сентябре września wrzesień",
    ("october oktober ekim října říjen octobre octubre ottobre outubro октябрь октября октябре października "
     "październik"),
    "november kasım listopadu novembre noviembre novembro ноябрь ноября ноябре listopada listopad",
    ("december dezember desember aralık prosince prosinec décembre diciembre dicembre dezembro декабрь декабря "
     "декабре grudnia grudzień"),
), 1) for name in names.split()}
_SHORT: Final = {name: number for number, names in enumerate(
    ("jan janv ene gen", "feb févr fev", "mar mär mrt", "apr avr abr", "mag", "jun giu", "jul juil lug", "aug ago",
     "sep sept set", "oct okt ott out", "nov", "dec dez déc dic"), 1) for name in names.split()}
_ROMAN: Final = "I|II|III|IV|V|VI|VII|VIII|IX|X|XI|XII"
_MONTH_OF: Final = _MONTHS | _SHORT | {name: number for number, name in enumerate(_ROMAN.lower().split("|"), 1)}
_AFTERNOON: Final = (
    "in the afternoon|in the evening|nachmittags|abends|am (?:nachmittag|abend)|(?:de l['’]après-midi|du soir)"
    "|de la tarde|(?:del|di) pomeriggio|(?:di|della) sera|da tarde|вечера|дня|['’]s (?:na)?middags|['’]s avonds"
    "|(?:på|om) (?:eftermiddagen|ettermiddagen|kvällen|aftenen|kvelden)|po południu|wieczorem|večer|odpoledne"
)
_MORNING: Final = (
    "in the morning|morgens|vormittags|früh|am (?:morgen|vormittag)|du matin|de la (?:mañana|madrugada)"
    "|(?:del|di) mattin[oa]|da (?:manhã|madrugada)|утра|['’]s (?:morgens|ochtends)|(?:på|om) "
    "(?:morgonen|förmiddagen|morgenen|formiddagen)|rano|ráno|dopoledne"
)
_AT_NIGHT: Final = "at night|nachts|de la noche|di notte|da noite|ночи|['’]s nachts|på natten|w nocy|v noci"
_NOON: Final = "noon|midday|mittags?|midi|mediodía|mezzogiorno|meio-dia|полдень|południe"
_MIDNIGHT: Final = "midnight|mitternacht|minuit|medianoche|mezzanotte|meia-noite|полночь|middernacht|midnatt|północ"
# fmt: on
_MONTH: Final = rf"(?P<month>{any_of(_MONTHS)})"
_SHORT_MONTH: Final = rf"(?P<month>(?:{any_of(_MONTHS)})|(?:{any_of(_SHORT)})\b\.?)"
_MONTH_NAMES: Final = " ".join((*_MONTHS, *_SHORT))
_DATE: Final = "1-1"
_DATE_LIKE: Final = re.compile(r"\d[-/.]\s?\d")
_DAY: Final = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_YEAR: Final = r"(?P<year>[12]\d{3})(?![\d.,:/-]\d)"
_ALONE: Final = r"(?<![\w.,:/$€£¥-])"
_ORDINAL: Final = r"(?:st|nd|rd|th|er|\.?[oaº°]|-?го|\.)?"
_OF_YEAR: Final = r"(?:\s(?:года|году|roku|(?:г|r)\.))?"
_ERAS: Final = {"明治": 1867, "大正": 1911, "昭和": 1925, "平成": 1988, "令和": 2018, "民国": 1911, "民國": 1911}
"""The year before the first of each."""
_CJK_YEAR: Final = (
    rf"(?:(?P<era>{any_of(_ERAS)}) ?(?P<of_era>元|\d{{1,3}}|{NUMERAL}{{1,3}})"
    rf"|(?P<year>[12]\d{{3}}|{NUMERAL}{{4}})) ?[年년]"
)
_CJK_MONTH: Final = rf"(?P<number>1[0-2]|0?[1-9]|{NUMERAL}{{1,2}}) ?[月월](?! ?[间間])"
_CJK_DAY: Final = rf"(?P<day>[12]\d|3[01]|0?[1-9]|{NUMERAL}{{1,3}}) ?[日号號일]"
_AMOUNT: Final = rf"\s?[%‰°$€£¥]|\s(?:{'|'.join(CURRENCIES.split())}|euros?|prozent|percent|per cent|procent)\b"
_DAY_OF: Final = rf"{_ALONE}{_DAY}{_ORDINAL}(?:\s|-)?(?:(?:day )?of |de |di |d['’]|den )?{_SHORT_MONTH}(?!\w)"
_OF_DATES: Final = (
    (_MONTH_NAMES, rf"{_DAY_OF}(?:,?(?:\s|-)(?:de |del |of |do )?{_YEAR}{_OF_YEAR})?"),
    (
        _ROMAN.lower().replace("|", " "),
        (
            rf"{_ALONE}{_DAY}(?:\.\s?|[\s/-])(?P<month>(?-i:{_ROMAN})|(?<=[./-])(?:{_ROMAN})(?=[./-]))(?:\.\s?|[\s/-])"
            rf"{_YEAR}(?! (?-i:k?W|m?Ah?|VA|Hz)\b){_OF_YEAR}(?!\w)"  # 12 V 1500 mA
        ),
    ),
    (_MONTH_NAMES, rf"(?<!\w){_SHORT_MONTH}\s{_DAY}(?:st|nd|rd|th)?(?![\w%°]|[.,:/-]\d|{_AMOUNT})(?:,?\s{_YEAR})?"),
    (_MONTH_NAMES, rf"(?<!\w){_SHORT_MONTH}\s(?:de |del |of )?{_YEAR}"),
    (_MONTH_NAMES, rf"(?<![\w-]){_MONTH}(?!\w)"),
    (_DATE, rf"{_ALONE}(?P<year>[12]\d{{3}})([-/.])(?P<number>0?[1-9]|1[0-2])\2{_DAY}(?![\w-]|[.,:/]\d)"),
    (_DATE, rf"{_ALONE}(?P<year>[12]\d{{3}})\.\s(?P<number>0?[1-9]|1[0-2])\.\s{_DAY}(?:\.|(?![\w,:]))"),
    (_DATE, rf"{_ALONE}{_DAY}\.\s?(?P<number>0?[1-9]|1[0-2])\.\s?{_YEAR}{_OF_YEAR}(?!\w)"),
    (_DATE, rf"{_ALONE}(?P<one>\d\d?)([-/])(?P<two>\d\d?)\2{_YEAR}{_OF_YEAR}(?!\w)"),
    ("月 월", rf"(?:{_CJK_YEAR} ?)?{_CJK_MONTH} ?(?:{_CJK_DAY})?"),
    ("年 년", _CJK_YEAR),
)
"""Ways to write dates; before each what a text has that holds one: one of these words or signs."""
_HOUR: Final = r"(?P<hour>[01]?\d|2[0-4])"
_MINUTE: Final = r"(?P<minute>[0-5]\d)"
_SECOND: Final = r"(?::(?P<second>[0-5]\d))?"
_DAY_PART: Final = rf"(?:(?P<afternoon>{_AFTERNOON})|(?P<morning>{_MORNING})|(?P<night>{_AT_NIGHT}))(?!\w)"
_O_CLOCK: Final = r"(?:\s?(?:uhr|uur|h|heures?|часов|часа|час|o['’]clock))?"
_EARLY_LATE: Final = r"(?:今 ?|(?<![最更较較提不早]))(?!. ?[一1] ?[点點](?! ?[钟鐘半]))"
"""What stands before 早 and 晚 where they are morning and evening: no 最晚八点, no 晚一点."""
_CJK_PART: Final = (
    rf"(?:(?P<morning>上 ?午|{_EARLY_LATE}早(?: ?[上晨间間])?|凌 ?晨|清 ?晨|午 ?前|朝|未 ?明|오 ?전|아 ?침|새 ?벽)"
    rf"|(?P<afternoon>下 ?午|傍 ?晚|中 ?午|午 ?後|夕 ?方|昼|오 ?후|저 ?녁|낮)"
    rf"|(?P<night>{_EARLY_LATE}[晚晩](?: ?[上间間])?|夜 ?[里间間]|深 ?夜|半 ?夜|夜|밤))"
)
_CJK_MINUTE: Final = (
    rf"(?:(?P<thirty>半|반)|(?P<fifteens>[一三]) ?刻"
    rf"|(?P<minute>\d\d?|{NUMERAL}{{1,3}}|[일이삼사오육칠팔구십]{{1,3}}) ?[分분]"
    rf"|(?P<late>[二三四五]?十[一二三四五六七八九]?|零[五六七八九])(?!{NUMERAL}))"
)
_HOURS: Final = (
    {word: number for row in FROM_TWO[:15] for number, word in enumerate(row.split()[:18], 2) if word != "-"}
    | dict.fromkeys(ONE.split(), 1)
    | {"dix-sept": 17, "dix-huit": 18, "dix-neuf": 19}
    | {
        hour: number
        for number, hours in enumerate(
            (
                "twenty zwanzig vingt veinte venti vinte twintig tjugo tyve tjue yirmi",
                "einundzwanzig vingt_et_une veintiuna ventuno vinte_e_uma eenentwintig tjugoett enogtyve tjueen",
                "zweiundzwanzig vingt-deux veintidós ventidue vinte_e_duas tweeëntwintig tjugotvå toogtyve tjueto",
                "dreiundzwanzig vingt-trois veintitrés ventitré vinte_e_três drieëntwintig tjugotre treogtyve tjuetre",
            ),
            20,
        )
        for hour in (each.replace("_", " ") for each in hours.split())
    }
)
_NTH_HOURS: Final = {
    form: number
    for names in (
        (
            "первого второго третьего четвёртого пятого шестого седьмого восьмого девятого десятого одиннадцатого "
            "двенадцатого"
        ),
        "první druhé třetí čtvrté páté šesté sedmé osmé deváté desáté jedenácté dvanácté",
        (
            "pierwszej drugiej trzeciej czwartej piątej szóstej siódmej ósmej dziewiątej dziesiątej jedenastej "
            "dwunastej trzynastej czternastej piętnastej szesnastej siedemnastej osiemnastej dziewiętnastej dwudziestej"
        ),
        "pierwsza druga trzecia czwarta piąta szósta siódma ósma dziewiąta dziesiąta jedenasta dwunasta",
    )
    for number, name in enumerate(names.split(), 1)
    for form in (name, name.replace("ё", "е"))
}
_TURKISH: Final = (
    "bir bire biri,iki ikiye ikiyi,üç üçe üçü,dört dörde dördü,beş beşe beşi,altı altıya altıyı,yedi yediye yediyi,"
    "sekiz sekize sekizi,dokuz dokuza dokuzu,on ona onu,on_bir on_bire on_biri,on_iki on_ikiye on_ikiyi"
)
_TURKISH_HOURS: Final = {
    form.replace("_", " "): number for number, forms in enumerate(_TURKISH.split(","), 1) for form in forms.split()
}
_FEW_HOUR: Final = rf"(?P<hour>{any_of(word for word, hour in _HOURS.items() if hour in range(1, 13))})"
_POLISH_HOURS: Final = " ".join(hour for hour in _NTH_HOURS if hour.endswith("ej"))
_HALF_OF_HOURS: Final = " ".join(("пол", *(f"пол{form}" for form in _NTH_HOURS)))
_HOUR_WORD: Final = rf"(?P<hour>2[0-4]|[01]?\d|{any_of(_HOURS | _NTH_HOURS)})"
_NTH_HOUR: Final = rf"(?P<hour>{any_of(_NTH_HOURS)})(?!\w)"
_AT: Final = (
    f"(?:{'|'.join(f'(?<={word} )' for word in ('las', 'la', 'alle', 'le', 'ore', 'às', 'as'))}|(?<=l')|(?<=à )(?=uma))"
)
_MINUTES: Final = {
    word: number
    for rows, start, step, last in ((FROM_TWO[:14], 2, 1, 18), (TENS[:14], 20, 10, 4), (VEINTI, 21, 1, 9))
    for row in rows
    for number, word in zip(range(start, 60, step), row.split()[:last], strict=False)
} | {"twenty-five": 25, "venticinque": 25}
_ENGLISH_MINUTES: Final = any_of(("twenty-five", *FROM_TWO[0].split(), *TENS[0].split()[:2]))
_MINUTE_WORD: Final = rf"(?P<count>\d\d?|{any_of(_MINUTES)})"
_QUARTERS: Final = (
    rf"(?:(?:le|un|um|una)\s)?(?P<count>[0-5]\d|quart|demie?|cuarto|media|mezz[ao]|quarto|meia"
    rf"|{any_of(_MINUTES)})(?![\w-]|\smin)"
)
_WAY: Final = r"(?P<way>et|y|e|moins|menos|meno)"
_OF_DAY: Final = rf"(?!\w)(?:,?\s{_DAY_PART})?"
_DAY_PARTS: Final = (
    "afternoon evening night morning nachmittags nachmittag abends abend nachts morgens morgen vormittags vormittag "
    "früh midi soir matin tarde noche mañana madrugada pomeriggio sera notte noite manhã mattino mattina вечера дня "
    "утра ночи namiddags middags avonds ochtends eftermiddagen aftenen kvelden morgenen formiddagen förmiddagen "
    "kvällen morgonen natten południu wieczorem nocy rano ráno dopoledne večer odpoledne noci ettermiddagen"
)
_CLOCK_TIMES: Final = (
    ("past after", rf"(?P<count>half|(?:a )?quarter|{_ENGLISH_MINUTES})\s(?P<way>past|after)\s{_HOUR_WORD}"),
    ("buçuk buçukta buçuğa", rf"(?:saat\s)?(?P<hour>{any_of(_TURKISH_HOURS)})\s(?P<thirty>buçu)(?:kta|ğa|ktan)"),
    (
        "geçe geçiyor kala var",
        rf"(?P<hour>{any_of(_TURKISH_HOURS)})\s(?P<count>çeyrek|beş|on|yirmi(?: beş)?)\s(?P<way>geç\w{{1,5}}|kala|var)",
    ),
    ("quarter", rf"(?P<count>(?:a )?quarter)\s(?P<way>to|before)\s{_HOUR_WORD}"),
    (
        "to",
        rf"(?:(?<=\bat )|(?<=\bby )|(?<=\buntil ))(?P<count>five|ten|twenty(?:-five)?)\s(?P<way>to)\s{_HOUR_WORD}",
    ),
    (
        "minutes minuten minuter minutter",
        rf"{_MINUTE_WORD}\sminut(?:es|en|t?er)\s(?P<way>past|after|to|before|vor|nach|voor|över|over|i)\s{_HOUR_WORD}",
    ),
    ("halb viertel dreiviertel halv", rf"(?P<count>halb|viertel|dreiviertel|halv)\s(?:{_HOUR_WORD}|(?P<two>to))"),
    (
        "halb half halv",
        rf"{_MINUTE_WORD}\s(?:minuten\s)?(?P<way>vor|nach|voor|over|i|över)\s(?P<next>halb|half|halv)\s{_HOUR_WORD}",
    ),
    ("half", rf"(?P<count>half)\s(?P<hour>{any_of(FROM_TWO[7].split()[:11])}|een|één)"),
    (
        "vor nach voor over i över",
        (
            rf"(?P<count>viertel|kwart|kvart|fünf|zehn|zwanzig|vijf|tien|twintig|fem|tio|tjugo|tyve)\s(?P<way>vor|nach"
            rf"|voor|over|i|över)\s{_HOUR_WORD}"
        ),
    ),
    ("половина половину половине четверть", rf"(?P<count>половин[аеу]|четверть)\s{_NTH_HOUR}"),
    ("půl", rf"(?P<count>půl)\s{_NTH_HOUR}"),
    (_HALF_OF_HOURS, rf"(?P<count>пол)-?{_NTH_HOUR}"),
    ("wpół", rf"(?P<count>wpół)\s(?P<way>do)\s{_NTH_HOUR}"),
    ("kwadrans", rf"(?P<count>kwadrans)\s(?P<way>po)\s{_NTH_HOUR}"),
    ("четверти kwadrans", rf"(?P<way>без|za)\s(?P<count>четверти|kwadrans)\s{_HOUR_WORD}"),
    ("las la alle le ore às as l all dall à", rf"{_AT}{_HOUR_WORD}\s{_WAY}\s{_QUARTERS}"),
    ("horas", rf"{_AT}{_HOUR_WORD}\shoras\s(?:{_WAY}\s)?{_MINUTE_WORD}\sminutos"),
    ("heure heures", rf"{_HOUR_WORD}\sheures?\s(?:{_WAY}\s)?{_QUARTERS}"),
    ("clock uhr uur", rf"{_HOUR_WORD}\s(?:o['’]clock|uhr|uur)"),
)
_CLOCK: Final = r"(?<!\w)(?:(?:kl|godz)\.?|klockan|klokken|godzin(?:ie|y|ą)|saat)\s"
_KL: Final = rf"(?:{_CLOCK}|(?<=\d-)|(?<![\w.,:/$€£¥-]))"
_TWELVE: Final = r"(?:(?:12|0?0|24)(?:[:.h]00)?\s?(?:(?:uhr|h)\s)?)?"
_NOONS: Final = (
    "noon midday mittag mittags midi mediodía mezzogiorno meio полдень middags południe 正 정 midnight mitternacht "
    "minuit medianoche mezzanotte meia полночь middernacht midnatt północ"
)
_TIMES: Final = (
    (_NOONS, rf"(?<!\w){_TWELVE}(?:(?P<noon>{_NOON})|(?P<midnight>{_MIDNIGHT}))(?!\w)"),
    (
        "midi minuit mediodía medianoche mezzogiorno mezzanotte meio",
        (
            r"(?<!\w)(?:(?P<noon>midi|mediodía|mezzogiorno|meio-dia)"
            r"|(?P<midnight>minuit|medianoche|mezzanotte|meia-noite))"
            rf"\s{_WAY}\s{_QUARTERS}"
        ),
    ),
    ("hours hrs", r"(?<![\w.,:-])(?P<hour>[01]\d|2[0-4])(?P<minute>[0-5]\d)\s?(?:hours|hrs)(?!\w)"),
    ("正 정", r"(?P<noon>正 ?午|(?<![가-힣])정 ?오)(?! ?[가-힣]*후)"),
    ("at las", r"(?:(?<=\b[Aa]t )|(?<=\blas ))(?P<hour>0\d)(?P<minute>[0-5]\d)(?![\w:/%]|[.,]\d)"),
    ("am pm a p", rf"(?:{_ALONE}|(?<=[\dm]-)){_HOUR}(?:[:.h]{_MINUTE}{_SECOND})?\s?(?P<half>[ap])\.?\s?m\b\.?(?!\w)"),
    (_DAY_PARTS, rf"{_KL}{_HOUR}(?:\s?[:.h]\s?{_MINUTE}{_SECOND})?{_O_CLOCK},?\s{_DAY_PART}"),
    (_DAY_PARTS, rf"(?:{_CLOCK}|(?<!\w)){_HOUR_WORD}{_O_CLOCK},?\s{_DAY_PART}"),
    ("uhr uur", rf"(?<!\w){_FEW_HOUR}\s(?:uhr|uur)\s(?P<count>{any_of(_MINUTES)})(?:\s{_DAY_PART})?(?!\w)"),
    (_DAY_PARTS, rf"(?<!\w){_FEW_HOUR}\s(?P<count>{any_of(_MINUTES)})\s{_DAY_PART}(?!\w)"),
    (
        FROM_TWO[0],
        (
            rf"(?<!\w)(?P<hour>{any_of(FROM_TWO[0].split()[:11])})\s(?P<count>{any_of(_MINUTES)})"
            r"\s(?P<half>[ap])\.?\s?m\b\.?(?!\w)"
        ),
    ),
    (
        _POLISH_HOURS,
        (
            rf"(?:(?<=\bo )|(?<=\bod )|(?<=\bdo )|(?<=\bpo )|(?<=\bprzed ))"
            rf"{_NTH_HOUR}(?:\s(?P<count>{any_of(_MINUTES)}))?"
            rf"(?=[,.;]|$|\s(?:do|rano|wieczorem|w|na|i|odbędzie|rozpocznie)\b)(?:\s{_DAY_PART})?"
        ),
    ),
    (
        "från till fra til",
        (
            r"(?:(?<=\bfrån )|(?<=\btill )|(?<=\bfra )|(?<=\btil ))(?P<hour>[01]\d|2[0-4])\.(?P<minute>[0-5]\d)"
            r"(?![\w:/%]|[.,]\d| ?(?:kr|procent|euro|m|kg)\b)"
        ),
    ),
    ("uhr uur", rf"{_KL}{_HOUR}(?:[:.]{_MINUTE})?\s?(?:uhr|uur)(?:\s(?P<late>[0-5]\d))?(?!\w)"),
    (
        "h heure heures hora horas",
        (
            rf"(?:(?<=às )|(?<=das )|(?<=à )|(?<=dès )|(?<=vers )|(?<=las )){_HOUR_WORD}"
            r"\s?(?:h|heures?|horas?|h\.)(?!\w|\s\d)"
        ),
    ),
    (
        ": h",
        (
            rf"(?:{_CJK_PART} ?の? ?|{_KL}){_HOUR}(?::|\s?h\s?){_MINUTE}{_SECOND}"
            r"(?:\s(?:horas|hs|uur|hod(?:in|\.)))?(?![\w:/]|[.,]\d|\s?min)"
        ),
    ),
    (
        "las alle às ore",
        (
            rf"(?:(?<=\blas )|(?<=\balle )|(?<=\bàs )|(?<=\bore )){_HOUR_WORD}(?=[,.;]?$|[,.;]\s|\s(?:e|y|de|da|en|em"
            rf"|in)\s)"
        ),
    ),
    (
        "kl godz klockan klokken godzinie godziny godziną saat",
        rf"{_CLOCK}{_HOUR_WORD}(?!\w)(?:[.:]{_MINUTE})?(?![\w:/]|[.,]\d)",
    ),
    (
        "часов часа час",
        (
            rf"(?:(?<=\bв )|(?<=\bк )|(?<=\bс )|(?<=\bна )|(?<=\bдо )){_HOUR_WORD}\s(?:часов|часа"
            rf"|час)(?:\s{_MINUTE}\sминут\w?)?"
            r"(?!\w)"
        ),
    ),
    (
        "uhr uur часов",
        (
            rf"{_ALONE}{_HOUR}(?:[.:]{_MINUTE})?"
            r"(?=\s?(?:bis|tot|до|-)\s?(?:[01]?\d|2[0-4])(?:[:.]\d\d)?\s(?:uhr|uur|часов))"
        ),
    ),
    ("le", rf"(?<=\bper le ){_HOUR_WORD}(?!\w)"),
    ("hodin", rf"(?:(?<=\bv )|(?<=\bve )|(?<=\bod )|(?<=\bdo )){_HOUR}(?:[.:]{_MINUTE})?\shodin(?!\w)"),
    (
        "sabah öğleden akşam gece",
        (
            rf"(?<!\w)(?:(?P<morning>sabah)|(?P<afternoon>akşam|öğleden sonra)|(?P<night>gece))\s(?:saat\s)?"
            rf"(?:{_HOUR}(?:[.:]{_MINUTE})?|(?P<word>{any_of(_TURKISH_HOURS)}))(?:\s(?P<thirty>buçuk))?"
            r"(?:[td][ae]n?|kta|ğa|[yn]?[ae])?(?!\w)"
        ),
    ),
    ("ore alle", rf"(?:(?<=\bore )|(?<=\balle )){_HOUR}[.,]{_MINUTE}(?![\w:/]|[.,]\d)"),
    (
        "点 點 時 时 시",
        (
            rf"(?:{_CJK_PART} ?の?)? ?(?P<hour>[01]?\d|2[0-4]"
            rf"|{HOUR}) ?(?!{DECIMALS})[点點時时시](?! ?[間间간]) ?{_CJK_MINUTE}?"
        ),
    ),
    *((heads, rf"(?<!\w){pattern}{_OF_DAY}") for heads, pattern in _CLOCK_TIMES),
)
_FORMS: Final = [(frozenset(heads.split()), pattern) for heads, pattern in (*_OF_DATES, *_TIMES)]
_compiled: Final = cache(partial(re.compile, flags=re.IGNORECASE))
"""At the first text that may hold the form: all of them take a third of a second, and most processes need none."""
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_NEEDS: Final = {
    "May": re.compile(
        r"\b(?:in|of|since|until|till|by|last|next|early|late|mid|from|before|after|during)[\s-]$", re.IGNORECASE
    ),
    "mai": re.compile(r"\b(?:en|de|au|du|début|fin|mi)[\s-]$", re.IGNORECASE),
}
"""What stands before a month that is another word too."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a time of day from ``start`` to ``end`` of the text: its parts in order."""

    start: int
    end: int
    norms: tuple[str, ...]


def moments_in(text: str, *, day_first: bool) -> Iterator[Moment]:
    """Yield dates and times in order; the longest reading of those that begin at one place.

    ``day_first``: 3/4/2024 is in April. Without it that may be in March, and is no date.
    """
    low = text.casefold()
    # A form is looked for where it can be: most sentences have no date and no time
    held = {*_LETTERS.findall(low), *low, _DATE if _DATE_LIKE.search(low) else ""}
    forms = [form for heads, form in _FORMS if not heads.isdisjoint(held)]
    matches = (each for form in forms for each in _compiled(form).finditer(text))
    found = [(each, norms) for each in matches if (norms := _parts(each, day_first=day_first))]
    end = 0
    for each, norms in sorted(found, key=lambda pair: (pair[0].start(), -pair[0].end())):
        if each.start() >= end:
            end = each.end()
            yield Moment(each.start(), end, norms)


def _parts(found: re.Match[str], *, day_first: bool) -> tuple[str, ...]:
    """Return the day, month and year, or the time; nothing where it is none."""
    parts = found.groupdict()
    if "hour" in parts or "noon" in parts:
        return (_time(found),)
    day, year, name = parts.get("day"), parts.get("year"), (parts.get("month") or "").rstrip(".")
    if era := parts.get("era"):
        year = str(_ERAS[era] + number_of(parts["of_era"].replace("元", "1")))
    number = number_of(parts["number"]) if parts.get("number") else _MONTH_OF.get(name.casefold())
    if parts.get("one"):
        one, two = int(parts["one"]), int(parts["two"])
        if not (0 < min(one, two) <= _MOST_MONTHS and max(one, two) <= _MOST_DAYS) or (
            not day_first and max(one, two) <= _MOST_MONTHS and one != two
        ):
            return ()
        number, day = (one, parts["two"]) if two > _MOST_MONTHS else (two, parts["one"])
    if name and not _is_month(found, name, alone=not day and not year):
        return ()
    named = (
        str(number_of(day)) if day else "",
        f"month-{number}" if number else "",
        str(number_of(year)) if year else "",
    )
    return tuple(part for part in named if part)


_MOST_MONTHS, _MOST_DAYS = 12, 31
_WORDS_TOO: Final = frozenset(("out", "set", "ago", "sept", "mar", "mag", "gen"))


def _is_month(found: re.Match[str], name: str, *, alone: bool) -> bool:
    if name in _WORDS_TOO and not found["month"].endswith(".") and not found.groupdict().get("year"):
        return False
    if name in ("may", "march", "august", "MAY") or (
        alone and name in ("Mars", "Mart", "marca", "Marca", "Maja", "Mei")
    ):
        return False
    needed = _NEEDS.get(name) if alone else None
    return needed is None or needed.search(found.string, max(0, found.start() - 8), found.start()) is not None


_HALF_DAY, _NIGHT = 12, 5
"""Hours of half a day, and until which it is night."""


def _time(found: re.Match[str]) -> str:
    parts = {name: part for name, part in found.groupdict().items() if part}
    if parts.keys() & {"noon", "midnight"}:
        parts["hour"] = "12" if "noon" in parts else "24"
    hour, minute = _clock(parts)
    is_evening = "night" in parts and _NIGHT <= hour < _HALF_DAY
    afternoon = "afternoon" in parts or parts.get("half", "") in ("p", "P") or is_evening
    if hour <= _HALF_DAY and afternoon:
        hour = hour % _HALF_DAY + _HALF_DAY
    elif hour <= _HALF_DAY and ("half" in parts or "morning" in parts or "night" in parts):
        hour %= _HALF_DAY
    return f"{hour % 24}:{minute:02d}" + (f":{parts['second']}" if "second" in parts else "")


def _clock(parts: Mapping[str, str]) -> tuple[int, int]:
    """Return hour and minute, also of ``half past eight``, ``halb neun``, ``nueve menos cuarto`` and ``八点一刻``."""
    word = parts.get("hour", parts.get("word", "two")).casefold()
    hour = _HOURS.get(word) or _NTH_HOURS.get(word) or _TURKISH_HOURS.get(word) or number_of(word)
    count, way = parts.get("count", "").casefold().removeprefix("a "), parts.get("way", "").casefold()
    if not count:
        fifteens = 15 * number_of(parts["fifteens"]) if "fifteens" in parts else 0
        minute = number_of(parts.get("minute", parts.get("late", "0")))
        return hour, 30 if "thirty" in parts else fifteens or minute
    minutes = next((minutes for begin, minutes in _COUNTS.items() if count.startswith(begin)), 0)
    minutes = minutes or _MINUTES.get(count) or int(count)
    is_before = way in _BEFORE
    if "next" in parts:  # fünf vor halb acht
        return (hour - 2) % _HALF_DAY + 1, 30 - minutes if is_before else 30 + minutes
    # halb neun, half negen, половина девятого; in English half nine is no time
    if is_before or (not way and count in _OF_THE_NEXT):
        hour = hour - 1 if hour > _HALF_DAY else (hour - 2) % _HALF_DAY + 1
    return hour, 60 - minutes if is_before else minutes


_COUNTS: Final = {
    "dreiviertel": 45, "half": 30, "halb": 30, "halv": 30, "demi": 30, "medi": 30, "mezz": 30, "mei": 30, "полов": 30,
    "yirmi beş": 25, "yirmi": 20,
    "wpół": 30, "půl": 30, "пол": 30, "çeyrek": 15,
    "quar": 15, "viertel": 15, "cuarto": 15, "kwa": 15, "kvart": 15, "четверт": 15,
}  # fmt: skip
_OF_THE_NEXT: Final = frozenset(
    ("halb", "viertel", "dreiviertel", "halv", "half", "половина", "половине", "половину", "четверть", "půl", "пол")
)
_BEFORE: Final = frozenset(
    ("to", "before", "vor", "voor", "moins", "menos", "meno", "i", "do", "без", "za", "kala", "var")
)
