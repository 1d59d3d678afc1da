"""What a number counts: units, currencies and per cent by one name each, and the words that multiply it."""

import re
from collections.abc import Iterable
from typing import Final

_SAME: Final = "kb mb gb tb kib mib gib db bar psi gw kwh mwh kv rpm khz mhz ghz ppm nm pa kpa"
_NAMES: Final = {
    "%": "% ٪ percent pct prozent procent процент процента процентов",
    "‰": "‰ promille permille",
    "°": "° degree degrees grad degré degrés grado grados gradi grau graus градус градуса градусов 度 도",
    "°c": "celsius 摄氏度",
    "°f": "fahrenheit 华氏度",
    "usd": "$ us$ usd dollar dollars dólar dólares dollaro dollari доллар доллара долларов ドル 美元 달러",
    "eur": "€ eur euro euros евро ユーロ 欧元 유로",
    "gbp": "£ gbp",
    "pound": "pound pounds pfund libra libras",
    "cny": "cny rmb yuan 元 人民币",
    "jpy": "jpy yen 円 日元 엔",
    "yen or yuan": "¥",
    "krw": "₩ krw 원",
    "brl": "r$ brl reais",
    "chf": "chf franken francs franchi",
    "inr": "₹ inr rupee rupees",
    "rub": "₽ rub рубль рубля рублей руб",
    "×": "times mal fois veces volte vezes раза 倍 배",
    "cents": "cents cent centimes céntimos centesimi centavos копеек",
    "km": (
        "km kilometer kilometers kilometre kilometres kilómetro kilómetros kilomètre kilomètres "
        "chilometro chilometri quilômetro quilômetros км километр километра километров 公里 千米 キロメートル 킬로미터"
    ),
    "m": "m meter meters metern metre metres metro metros mètre mètres metri м метр метра метров 米 メートル 미터",
    "cm": (
        "cm centimeter centimeters zentimeter centimetre centimetres centimètres centímetros centimetri см 厘米 センチ"
    ),
    "mm": "mm millimeter millimeters millimetre millimetres millimètres milímetros millimetri мм 毫米 ミリ",
    "mi": "mi mile miles meile meilen milla millas",
    "ft": "ft foot feet",
    "in": "inch inches zoll",
    "yd": "yd yard yards",
    "kg": (
        "kg kgs kilo kilos kilogram kilograms kilogramm kilogramme kilogrammes chilo chili chilogrammo "
        "chilogrammi quilo quilos кг килограмм килограмма килограммов 公斤 千克 キログラム 킬로그램"
    ),
    "g": "g gram grams gramm gramme grammes gramo gramos grammo grammi grama gramas грамм граммов 克 グラム 그램",
    "mg": "mg milligram milligrams milligramm мг",
    "t": "t ton tons tonne tonnes tonnen tonelada toneladas tonnellata tonnellate т тонна тонны тонн 吨 トン 톤",
    "lb": "lb lbs",
    "oz": "oz ounce ounces",
    "l": "l liter liters litre litres litro litros litri л литр литра литров 升 リットル 리터",
    "ml": "ml milliliter milliliters millilitre millilitres мл 毫升",
    "gal": "gal gallon gallons",
    "h": "h hr hrs hour hours stunde stunden heure heures hora horas ora ore ч час часа часов 小时 時間 시간",
    "min": "min mins minute minutes minuten minuto minutos minuti мин минута минуты минут 分钟 分間",
    "s": (
        "s sec secs second seconds sekunde sekunden seconde secondes segundo segundos secondi секунда "
        "секунды секунд 秒 초"
    ),
    "ms": "ms millisecond milliseconds",
    "km/h": "kmh kph",
    "mi/h": "mph",
    "kn": "knots",
    "day": "day days tag tage tagen jour jours día días giorno giorni dia dias день дня дней 天",
    "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane неделя недели недель",
    "month": "month months monat monate monaten mois mes meses mese mesi mês месяц месяца месяцев",
    "year": "year years jahr jahre jahren ans année années año años anno anni ano anos год года лет",
    "hz": "hz hertz",
    "w": "w watt watts",
    "v": "v volt volts",
    "kw": "kw kilowatt kilowatts",
    "mw": "mw megawatt megawatts",
    "ha": "ha hectare hectares hektar hectáreas ettari гектаров",
    "acre": "acre acres",
} | {name: name for name in _SAME.split()}
_SCALES: Final = {
    12: "dozen dozens dutzend douzaine douzaines docena docenas dozzina dozzine dúzia dúzias дюжина дюжины",
    100: "hundred 百",
    1_000: "thousand tausend mila mil mille тыс тысяча тысячи тысяч 千 천",
    10_000: "万 萬 만",
    1_000_000: (
        "million millions mio mn millón millones millionen milhão milhões milione milioni млн миллион "
        "миллиона миллионов"
    ),
    100_000_000: "亿 億 억",
    1_000_000_000: (
        "bn billion billions mrd milliarde milliarden milliard milliards miliardo miliardi bilhão bilhões "
        "млрд миллиард миллиарда миллиардов"
    ),
    1_000_000_000_000: "tn trillion trillions billionen трлн 兆 조",
}
UNITS: Final = {name: unit for unit, names in _NAMES.items() for name in names.split()}
SCALES: Final = {name: scale for scale, names in _SCALES.items() for name in names.split()}
ABBREVIATED: Final = frozenset(("Mio", "Mrd", "тыс", "млн", "млрд", "трлн"))
MOST: Final = 10**18
"""Beyond it nothing multiplies a number."""
OF_MONEY: Final = {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000, "t": 1_000_000_000_000}
"""Letters behind an amount of money, which behind other numbers are units."""
_EITHER: Final = {"pound": ("lb", "gbp"), "yen or yuan": ("jpy", "cny"), "°": ("°c", "°f")}
_POWER_NAMES: Final = {
    2: "square quadrat carré carrés cuadrados quadrati quadrados кв 平方 sq",
    3: "cubic kubik cubes cúbicos cubi куб 立方 cu",
}
_POWERS: Final = {name: power for power, names in _POWER_NAMES.items() for name in names.split()}


def any_of(names: Iterable[str]) -> str:
    """Return a pattern of any of the names, the longest first."""
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_PER_CENT: Final = re.compile(r"\s?(?:per|pour|por)\s?(?:cent|cento|ciento)\b|\s?(?:パーセント|퍼센트)", re.IGNORECASE)
_MARK: Final = re.compile(r"\s?([%٪‰$€£¥₹₽₩°])(?:\s?([CF])\b)?")
_NAME: Final = re.compile(
    rf"[ \u00a0-]?(?:(?:d['’]|de |di ))?(?:(?P<power>{any_of(_POWERS)})\.?\s?)?(?P<name>[^\W\d_]{{1,24}})(?![^\W\d_])"
    rf"(?:\^?(?P<digit>[23])(?!\w)|\s(?P<behind>{any_of(_POWERS)})\b|\s(?P<scale>celsius|fahrenheit|цельсия)\b)?",
    re.IGNORECASE,
)
_CJK_NAME: Final = re.compile(
    rf"\s?(?P<power>平方|立方)?(?P<name>{any_of(name for name in UNITS if _CJK.match(name))})"
    "(?P<digit>)(?P<behind>)(?P<scale>)"
)
_RATE: Final = re.compile(r"(?:\s?/\s?|\s(?:per|pro|par|por|al|в)\s)([^\W\d_]{1,24})", re.IGNORECASE)
_SCALE: Final = re.compile(r"\s?([万萬만亿億억千천兆조百])|[ \u00a0-]?([^\W\d_]{1,24})\b", re.IGNORECASE)
_LENGTHS: Final = frozenset(("km", "m", "mi", "ft", "cm"))


def unit_behind(text: str, end: int) -> tuple[str, int]:
    """Return the unit that stands behind a number, and where it ends; an empty one where none does."""
    if found := _PER_CENT.match(text, end):
        return "%", found.end()
    if found := _MARK.match(text, end):
        return UNITS[found[1]] + (found[2] or "").casefold(), found.end()
    found = _CJK_NAME.match(text, end) or _NAME.match(text, end)
    if found is None or (unit := UNITS.get(found["name"].casefold())) is None:
        return "", end
    power = found["digit"] or found["power"] or found["behind"]
    if power:
        unit += f"^{power if power.isdigit() else _POWERS[power.casefold()]}"
    elif found["scale"]:
        unit = "°f" if found["scale"][0] in "fF" else "°c"
    end = found.end()
    if unit in _LENGTHS and (rate := _RATE.match(text, end)) and (time := UNITS.get(rate[1].casefold())):
        return f"{unit}/{time}", rate.end()
    return unit, end


def scale_behind(text: str, end: int) -> tuple[int, int]:
    """Return how many times the words behind a number make it, ``3 mil millones``, and where they end."""
    scale = 1
    while scale < MOST and (found := _SCALE.match(text, end)) and (more := SCALES.get(found[1] or found[2].casefold())):
        scale, end = scale * more, found.end()
        end += text.startswith(".", end) and found[2] in ABBREVIATED
    return scale, end


def same_unit(claimed: str, found: str) -> bool:
    """Return whether a number that is found with one unit may be claimed with the other."""
    either = _EITHER.get(claimed, ()), _EITHER.get(found, ())
    return not claimed or claimed == found or found in either[0] or (claimed in either[1] and found != "°")
