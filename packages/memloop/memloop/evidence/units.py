"""What a number counts: units, currencies and per cent by one name each, and the words that multiply it."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Final

_BASES: Final = {
    "m": ("μmcdk", ("m meter meters metern metre metres metro metros metri metra metrow metru м метр метра метров 米 "
        "公尺 メートル 미터")),
    "g": ("nμmdk", ("g gram grams gramm gramme grammes gramo gramos grammo grammi grama gramas gramow г грамм грамма "
        "граммов 克 公克 グラム 그램")),
    "l": ("μmcdh", ("l liter liters litern litre litres litro litros litri litra litrow litru л литр литра литров 升 "
        "公升 リットル 리터")),
    "w": ("kMG", "w вт watt watts wat ватт 瓦 ワット 와트"), "wh": ("kMG", "wh wattstunden"),
    "v": ("mk", "v volt volts volti вольт"), "hz": ("kMG", "hz гц hertz герц 赫兹 ヘルツ 헤르츠"),
    "pa": ("hkM", "pa pascal"), "j": ("kM", "joule joules"),
    "cal": ("k", "cal calorie calories kalorien calorias caloria калорий カロリー 칼로리"), "mol": ("nμm", "mol"),
    "N": ("k", "newton newtons ньютон ньютонов"),
    "Nm": ("k", "newtonmeter newtonmetre newtonmetres newtonmeters newtonmetri newtonmetern"),
    "b": ("kMGT", "b б byte bytes octet octets байт バイト 바이트 字节"), "bit": ("kMG", "bit bits бит"),
}  # fmt: skip
"""What stands before each, and its names."""
_PREFIXES: Final = {
    "n": "n nano", "μ": "μ мк micro mikro микро 微 マイクロ", "m": "m м milli mili мили 毫 ミリ 밀리",
    "c": "c с centi zenti санти 厘 センチ 센티", "d": "d д deci dezi деци 分 デシ 데시",
    "h": "h hecto hekto etto гекто ヘクト", "k": "k к kilo chilo quilo кило 千 キロ 킬로",
    "M": "m м mega мега 兆 メガ 메가", "G": "g г гига giga ギガ 기가", "T": "t tera тера テラ",
}  # fmt: skip
_NAMES: Final = {
    "%": "% ٪ yüzde prosent procento percent pct prozent procent procenta procentow процент процента процентов",
    "‰": "‰ promille permille", "°": "° degree degrees",
    "grad": ("grad graden grader degre degres grado grados gradi grau graus градус градуса градусов stopni derece "
        "stupnu 度 도"),
    "°c": "celsius 摄氏度", "°f": "fahrenheit 华氏度",
    "usd": "$ us$ usd dollar dollars dolar dolares dollaro dollari доллар доллара долларов dolarow ドル 美元 美金 달러",
    "eur": "€ eur euro euros евро ユーロ 欧元 유로", "gbp": "£ gbp 英镑 ポンド 파운드",
    "pound": "pound pounds pfund libra libras", "cny": "cny rmb yuan 元 人民币 块 块钱 塊", "jpy": "jpy yen 円 日元 엔",
    "¥": "¥", "jiao": "角", "krw": "₩ krw 원", "brl": "r$ brl reais", "chf": "chf franken francs franchi",
    "inr": "₹ inr rs rupee rupees", "rub": "₽ rub рубль рубля рублей руб", "pln": "pln zł złoty złote złotych zloty",
    "kr": "kr krona kronor krone kroner kronen", "try": "₺ lira liras liraya", "czk": "kč koruna koruny korun",
    "uah": "₴ uah гривен", "ils": "₪", "thb": "฿ thb baht", "cad": "cad ca$ c$", "aud": "aud au$ a$", "nzd": "nzd nz$",
    "hkd": "hkd hk$ 港元 港币 港幣", "peso": "peso pesos",
    "×": "times mal fois veces volte vezes keer maal ganger razy раза раз 倍 배",
    "cents": ("cents cent centime centimes centimo centimos centesimo centesimi centavo centavos rappen копеек копейки "
        "groszy grosze セント 센트"),
    "km": "公里", "キロ": "キロ 킬로", "cm": "センチ", "mm": "ミリ",
    "mi": "mi mile miles meile meilen milla millas", "ft": "ft foot feet",
    "in": "inch inches zoll", "yd": "yd yard yards", "m^2": "qm sqm mq", "ft^2": "sqft", "μg": "mcg",
    "kg": "kgs kilo kilos chilo chili quilo quilos 公斤", "jin": "斤", "mu": "亩 畝",
    "t": "t ton tons tonne tonnes tonnen tonelada toneladas tonnellata tonnellate т тонна тонны тонн 吨 トン 톤",
    "lb": "lb lbs", "oz": "oz ounce ounces", "gal": "gal gallon gallons",
    "tbsp": "tbsp tablespoon tablespoons essloffel 큰술 汤匙", "tsp": "tsp teaspoon teaspoons teeloffel 작은술 茶匙",
    "h": ("h hr hrs 个小时 個小時 小時 个钟头 hour hours stunde stunden std heure heures hora horas ora ore uur timer "
        "time timme timmar godzina godziny godzin hodina hodiny hodin saat ч час часа часов 小时 時間 시간"),
    "min": ("min mins minute minutes minuten minuto minutos minuti minuut minuter minuta minuty minut minutter "
        "minutach dakika мин минута минуты минут 分钟 分鐘 分間"),
    "s": ("s sec secs second seconds sekunde sekunden seconde secondes seconden segundo segundos secondi sekunder "
        "saniye sekund секунда секунды секунд 秒 초"),
    "ms": "ms millisecond milliseconds millisekunden", "km/h": "kmh kph stundenkilometer", "mi/h": "mph",
    "Mbit/s": "mbps", "kn": "knots",
    "day": ("day days tag tage tagen jour jours dia dias giorno giorni dag dagen dagar dage dager dni dny gun день дня "
        "дней 天"),
    "week": ("week weeks weken woche wochen semaine semaines semana semanas settimana settimane uge uger uke uker "
        "vecka veckor tydzien tygodnie tygodni hafta tyden tydny tydnu неделя недели недель"),
    "month": ("month months monat monate monaten mois mes meses mese mesi maand maanden manad manader maned maneder ay "
        "mesic mesice mesicu miesiac miesiace miesiecy месяц месяца месяцев 个月 個月 か月 ヶ月 カ月 개월 달"),
    "year": ("year years jahr jahre jahren ans annee annees ano anos anno anni jaar ar lat rok roku lata let yil год "
        "года лет"),
    "ha": ("ha ヘクタール 公顷 헥타르 hectare hectares hektar hectarea hectareas ettaro ettari hektara hektarow гектар "
        "гектара гектаров"),
    "acre": "acre acres", "kib": "kib", "mib": "mib", "gib": "gib", "hp": "hp bhp horsepower",
    "ps": "ps pferdestarken pferdestarke",
    "pcs": "pcs pc piece pieces stk stuck sztuk szt pezzi piezas pecas шт штук adet ks kusu", "db": "db", "bar": "bar",
    "psi": "psi", "rev/min": "rpm",
    "rev": ("tr tour tours giro giri rotacao rotacoes revolucion revoluciones revolution revolutions umdrehung "
        "umdrehungen varv omwentelingen obrotow оборотов"),
    "cup": "cup cups tasse tassen tasses taza tazas tazza tazze xicara xicaras kopje kopjes カップ 컵",
    "hg": "etto etti", "ppm": "ppm", "mmhg": "mmhg 毫米汞柱", "bpm": "bpm",
}  # fmt: skip
_SCALES: Final = {
    12: "dozen dozens dutzend douzaine douzaines docena docenas dozzina dozzine dúzia dúzias дюжина dozijn dussin",
    100: "hundred honderd hundra 百 백",
    1_000: ("thousand tausend tsd mila mil mille duizend tusen tys tusind bin tisíc tysiąc tysiące tysięcy тыс тысяча "
        "тысячи тысяч 千 천"),
    10_000: "万 萬 만", 100_000: "lakh lakhs",
    1_000_000: ("million millions mio mn millón millones millionen milhão milhões milione milioni miljoen miljon "
        "miljoner milion mln miliona miliony milionów millioner miljoona miljoonaa milyon milionů mio mill млн миллион "
        "миллиона миллионов"),
    10_000_000: "crore crores", 100_000_000: "亿 億 억",
    1_000_000_000: ("bn billion billions mrd mld md mds milliarde milliarden milliard milliards miliardo miliardi "
        "bilhão bilhões miljard miljarder miliard miliarda miliardy miliardów milliarder miljardi miljardia milyar mia "
        "млрд миллиард миллиарда миллиардов"),
    1_000_000_000_000: "tn trillion trillions billionen biljoen biljoner трлн 兆 조",
}  # fmt: skip


@lru_cache(maxsize=4096)
def bare(word: str) -> str:
    """Return a word in lower case and Latin letters without accents, as units are listed."""
    low = word.casefold()
    return low if low.isascii() or low > "ɏ" else re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", low))


_TIMES: Final = {
    prefix: Fraction(10) ** power for prefix, power in zip("nμmcdhkMG", (-9, -6, -3, -2, -1, 2, 3, 6, 9), strict=True)
}
_INCH, _LB = Fraction(254, 10_000), Fraction(45_359_237, 100_000)
_IN_BASE: Final = {
    prefix + base: (base, _TIMES.get(prefix, Fraction(1)))
    for base in ("m", "g", "l", "w", "wh", "v", "hz", "pa", "j")
    for prefix in ("", *_BASES[base][0])
} | {
    "s": ("s", Fraction(1)), "ms": ("s", _TIMES["m"]), "min": ("s", Fraction(60)), "h": ("s", Fraction(3600)),
    "t": ("g", Fraction(10**6)), "hg": ("g", Fraction(100)), "lb": ("g", _LB), "oz": ("g", _LB / 16),
    "in": ("m", _INCH), "ft": ("m", 12 * _INCH), "yd": ("m", 36 * _INCH), "mi": ("m", 63_360 * _INCH),
    "ha": ("m^2", Fraction(10**4)),
}  # fmt: skip
"""Of which unit each is how many. Months, money and bytes are not: a month has no length, a rate changes."""
_QUANTITY: Final = re.compile(
    r"([-+±~≈<>≤≥]?)(?:(\d{1,15}(?:\.\d{1,15})?)(?:/(\d{1,9}))?|(\d{1,3}(?::\d\d){1,2}(?:\.\d{1,3})?))"
)
_CLOCKED: Final = re.compile(r"\d{1,3}:\d\d(?:(:\d\d)|\.\d{1,3})")


@lru_cache(maxsize=256)
def in_base(unit: str) -> tuple[str, Fraction] | None:
    """Return the unit that one is compared in, and how many of those it is; nothing where it is only itself."""
    over, _, by = unit.partition("/")
    if by:
        one, two = in_base(over), in_base(by)
        return (f"{one[0]}/{two[0]}", one[1] / two[1]) if one and two else None
    name, _, power = unit.partition("^")
    base = _IN_BASE.get(name)
    if not base or not power:
        return base
    times = base[1] ** int(power)
    return ("l", 1000 * times) if base[0] + power == "m3" else (f"{base[0]}^{power}", times)


@lru_cache(maxsize=4096)
def quantity(norm: str, unit: str) -> str:
    """Return a number and its unit as all that are equal are: ``1.2`` kg and ``1200`` g; empty without such a unit.

    ``2:21:08`` is hours, and ``1:42.07`` minutes.
    """
    if not unit and ":" in norm and (clocked := _CLOCKED.fullmatch(norm)):
        unit = "h" if clocked[1] else "min"
    base = in_base(unit) if unit else None
    found = _QUANTITY.fullmatch(norm) if base else None
    if not base or not found or (found[4] and unit not in ("h", "min")):
        return ""
    number = (
        sum(Fraction(part) / 60**place for place, part in enumerate(found[4].split(":")))
        if found[4]
        else Fraction(found[2]) / int(found[3] or 1)
    )
    return f"{found[1]}{number * base[1]} {base[0]}"


def _script(word: str) -> str:
    return unicodedata.name(word[0]).split()[0]


_LONG: Final = 3


def _is_symbol(name: str) -> bool:
    return (len(name) < _LONG and name < "\u1100") or name in _BASES


def _units() -> Iterator[tuple[str, str]]:
    for base, (shorts, names) in _BASES.items():
        for name in names.split():
            yield bare(name), base
            # mg and milligram, but not mgram
            for short in shorts:
                for prefix in _PREFIXES[short].split():
                    if _script(prefix) in (_script(name), "GREEK") and _is_symbol(prefix) == _is_symbol(name):
                        yield bare(prefix + name), short + base
    for unit, names in _NAMES.items():
        yield from ((bare(name), unit) for name in names.split())


UNITS: Final = dict(_units())
SYMBOLS: Final = {
    "mW": "mw", "N": "N", "kN": "kN", "Nm": "Nm", "kNm": "kNm",
    "Mb": "Mbit", "Gb": "Gbit", "MBps": "Mb/s", "EL": "tbsp", "TL": "tsp", "SEK": "sek", "NOK": "nok",
    "DKK": "dkk", "TRY": "try", "CZK": "czk", "HUF": "huf", "ZAR": "zar", "MXN": "mxn", "SGD": "sgd",
}  # fmt: skip
"""Units that are others in small letters."""
SCALES: Final = {name: scale for scale, names in _SCALES.items() for name in names.split()}
ABBREVIATED: Final = frozenset(
    ("Mio", "mio", "mill", "mia", "Mrd", "Tsd", "Md", "Mds", "tys", "тыс", "млн", "млрд", "трлн")
)
MOST: Final = 10**18
"""Beyond it nothing multiplies a number."""
OF_MONEY: Final = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000, "t": 1_000_000_000_000}
"""Letters behind an amount of money, which behind other numbers are units."""
_ALIKE: Final = (
    "pound lb,pound gbp,キロ kg,キロ km,jpy ¥,cny ¥,kr sek,kr nok,kr dkk,° grad,grad °c,tsp try,cents eur,cents usd"
    ",cents brl,cents chf,cents rub,cents pln,cents cad,cents aud,cents nzd,cents peso"
)
_CLAIMED_AS: Final = frozenset(
    (name, other) for pair in _ALIKE.split(",") for name, other in (pair.split(), pair.split()[::-1])
) | {("°", "°c"), ("°", "°f")}
_POWER_NAMES: Final = {
    2: (
        "square quadrat carre carres cuadrados cuadrado quadrati quadrado quadrados vierkante kvadrat kwadratowych кв "
        "квадратных 平方 제곱 sq"
    ),
    3: "cubic kubik cube cubes cubicos cubi kubieke szesciennych куб кубических 立方 세제곱 cu",
}
_POWERS: Final = {name: power for power, names in _POWER_NAMES.items() for name in names.split()}
CURRENCIES: Final = (
    "EUR USD GBP CHF CNY RMB JPY KRW BRL INR RUB PLN SEK NOK DKK CZK HUF TRY CAD AUD NZD HKD SGD MXN ZAR THB UAH Rs"
)
"""Codes that stand before an amount."""


def any_of(names: Iterable[str]) -> str:
    """Return a pattern of any of the names, the longest first."""
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_POINTS: Final = re.compile(
    r"[\s-]?(?:%[\s-]?p(?:oints?|p)?\b|%?\s?(?:포인트|ポイント)|퍼센트\s?포인트|[个個]百分点|pp\b|p\.\s?p\.|п\.\s?п\."
    r"|(?:percentage|per ?cent|%)[\s-]points?|prozentpunkte?n?|points? de pourcentage|puntos? porcentual(?:es)?"
    r"|punt[oi] percentual[ei]|pontos? percentua(?:l|is)|procentpunt(?:en)?|procentenhet(?:er)?|punkt\w* procentow\w+"
    r"|процентн\w+ пункт\w*)(?!\w)",
    re.IGNORECASE,
)
_PER_CENT: Final = re.compile(r"\s?(?:per|pour|por)\s?(?:cent|cento|ciento)\b|\s?(?:パーセント|퍼센트)", re.IGNORECASE)
_MARK: Final = re.compile(r"\s?([%٪‰$€£¥₹₽₩₺₴₪฿°])(?:\s?([CF])\b)?")
_NAME: Final = re.compile(
    rf"[ \u00a0'’-]?(?:(?:d['’]|de |di ))?(?:(?P<power>{any_of(_POWERS)})\.?\s?)?(?P<name>[^\W\d_]{{1,24}})(?![^\W\d_])"
    r"(?:\^?(?P<digit>[23])(?!\w)|[\s-](?P<behind>[^\W\d_]{4,14})(?![^\W\d_]))?",
    re.IGNORECASE,
)
_SCALE_NAMES: Final = dict.fromkeys(("celsius", "centigrados", "centigradi", "centigrade", "centigrades"), "°c") | {
    "цельсия": "°c",
    "celsjusza": "°c",
    "fahrenheit": "°f",
}
_CJK_NAME: Final = re.compile(
    rf"\s?(?P<power>平方|立方|세제곱"
    rf"|제곱)?(?P<name>{any_of(name for name in UNITS if _CJK.match(name))})(?P<digit>)(?P<behind>)"
)
_RATE: Final = re.compile(
    r"(?:\s?/\s?|\s(?:per|pro|par|por|al|alla|na|an|a|à l['’]|la|в|i)\s)([^\W\d_]{1,24})", re.IGNORECASE
)
_SCALE: Final = re.compile(
    r"\s?((?![千兆](?:米|克|瓦|字节))[万萬만亿億억千천兆조百백])|[ \u00a0-]?([^\W\d_]{1,24})\b", re.IGNORECASE
)
_PRODUCTS: Final = frozenset((("N", "m"), ("kN", "m"), ("w", "h"), ("kw", "h"), ("Mw", "h"), ("Gw", "h")))
OF_TIME: Final = frozenset(("s", "min", "h", "day", "week", "month", "year"))
_TURKISH_IS: Final = re.compile(r"(?<=[^\W\d_]{3})[dt][iıu]r$")
_RATES: Final = OF_TIME | frozenset(("l", "dl", "kg", "m", "km", "m^2", "ha"))


def unit_named(name: str) -> str:
    """Return the unit of a name or sign; empty where it is none."""
    low = bare(name) if name != "på" else ""
    return SYMBOLS.get(name) or UNITS.get(low) or UNITS.get(_TURKISH_IS.sub("", low), "")


def unit_behind(text: str, end: int) -> tuple[str, int]:
    """Return the unit that stands behind a number, and where it ends; an empty one where none does."""
    if found := _POINTS.match(text, end):
        return "%-points", found.end()
    if found := _PER_CENT.match(text, end):
        return "%", found.end()
    if found := _MARK.match(text, end):
        return rated(UNITS[found[1]] + (found[2] or "").casefold(), text, found.end())
    found = _CJK_NAME.match(text, end) or _NAME.match(text, end)
    if found is None or not (unit := unit_named(found["name"])) or text.startswith("г.", found.start("name")):
        return "", end
    end = found.end()
    behind = bare(found["behind"] or "")
    power = found["digit"] or _POWERS.get(bare(found["power"] or ""))
    if behind in _SCALE_NAMES and unit in ("°", "grad"):
        unit = _SCALE_NAMES[behind]
    elif (unit, unit_named(behind)) in _PRODUCTS:
        unit += unit_named(behind)
    elif not power and behind in _POWERS:
        unit += f"^{_POWERS[behind]}"
    else:
        unit += f"^{power}" if power else ""
        end = found.end("digit" if found["digit"] else "name")
    return rated(unit, text, end)


def rated(unit: str, text: str, end: int) -> tuple[str, int]:
    """Return a unit with what it is counted by, and where that ends: ``km/h``, ``5 euros per month``."""
    rate = _RATE.match(text, end) if unit not in ("", "×") else None
    by = unit_named(rate[1]) if rate else ""
    return (f"{unit}/{by}", rate.end()) if rate and by in _RATES else (unit, end)


def scale_behind(text: str, end: int) -> tuple[int, int]:
    """Return how many times the words behind a number make it, ``3 mil millones``, and where they end."""
    scale = 1
    while scale < MOST and (found := _SCALE.match(text, end)) and (more := SCALES.get(found[1] or found[2].casefold())):
        scale, end = scale * more, found.end()
        end += text.startswith(".", end) and found[2] in ABBREVIATED
    return scale, end


def same_unit(claimed: str, found: str) -> bool:
    """Return whether a number that is found with one unit may be claimed with the other."""
    (one, _, by), (other, _, per) = claimed.partition("/"), found.partition("/")
    return not claimed or claimed == found or (by == per and (one, other) in _CLAIMED_AS)
