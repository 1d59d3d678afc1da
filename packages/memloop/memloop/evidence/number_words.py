"""The words of numbers in English, German, French, Spanish, Italian, Portuguese and Russian.

A dash stands where a row has no word.
"""

from typing import Final

FROM_TWO: Final = (
    (
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen"
    ),
    (
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
        "siebzehn achtzehn neunzehn"
    ),
    "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize",
    (
        "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
        "diecisiete dieciocho diecinueve"
    ),
    (
        "due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici "
        "sedici diciassette diciotto diciannove"
    ),
    (
        "dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis "
        "dezessete dezoito dezenove"
    ),
    "duas - - - - - - - - - - - quatorze - dezasseis dezassete - dezanove",
    (
        "два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать "
        "четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать"
    ),
    "две трёх четырёх пяти шести семи восьми девяти десяти",
)
TENS: Final = (
    "twenty thirty forty fifty sixty seventy eighty ninety",
    "zwanzig dreissig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "vingt trente quarante cinquante soixante - quatre-vingt",
    "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
    "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто",
)
HUNDREDS: Final = (
    ("hundert doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"),
    "cien duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos",
    "cem doscientas trescientas cuatrocientas quinientas seiscientas setecientas ochocientas novecientas",
    "сто двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот",
)
VEINTI: Final = "veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve"
ORDINALS: Final = (
    (
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
        "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
    ),
    "premier deuxième troisième quatrième cinquième sixième septième huitième neuvième dixième",
    "première seconde - - - - - - - -",
    "primero segundo tercero cuarto quinto sexto séptimo octavo noveno décimo",
    "primer segunda tercer cuarta quinta sexta séptima octava novena décima",
    "primo secondo terzo quarto quinto sesto settimo ottavo nono decimo",
    "prima seconda terza quarta quinta sesta settima ottava nona decima",
    "primeiro segundo terceiro quarto quinto sexto sétimo oitavo nono",
    "primeira segunda terceira quarta quinta sexta sétima oitava nona",
    "первый второй третий четвёртый пятый шестой седьмой восьмой девятый десятый",
)
GERMAN_ORDINALS: Final = "erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft"
ENDINGS: Final = ("e", "er", "es", "en", "em")
ONE: Final = "one ein eine einen einem eins un une uno una um uma один одна"
OTHER_WORDS: Final = frozenset(
    [
        "one",
        "ein",
        "eine",
        "einen",
        "einem",
        "eins",
        "un",
        "une",
        "uno",
        "una",
        "um",
        "uma",
        "один",
        "одна",
        "due",
        "dos",
        "sei",
        "otto",
        "once",
        "elf",
        "seize",
        "sept",
        "six",
        "tre",
        "первый",
        "acht",
        "achte",
        "achten",
        "achter",
        "cent",
        "cents",
        "cento",
        "ciento",
        "cien",
        "mil",
        "mille",
        "mila",
        "hundert",
        "tausend",
        "hundred",
        "thousand",
        "first",
        "second",
        "premier",
        "première",
        "seconde",
        "primero",
        "primer",
        "segundo",
        "segunda",
        "cuarto",
        "cuarta",
        "quinta",
        "quinto",
        "primo",
        "prima",
        "secondo",
        "seconda",
        "quarto",
        "quarta",
        "nona",
        "nono",
        "sexta",
        "terza",
        "terzo",
        "primeiro",
        "primeira",
        "erste",
        "erster",
        "erstes",
        "ersten",
        "erstem",
        "сто",
    ]
)
"""Numbers, and other words as well."""
HALF: Final = frozenset(
    [
        "half",
        "halb",
        "halbe",
        "halber",
        "halbes",
        "halben",
        "hälfte",
        "moitié",
        "demi",
        "demie",
        "mitad",
        "metà",
        "mezzo",
        "mezza",
        "metade",
        "meia",
        "meio",
        "media",
        "medio",
        "половина",
        "половину",
        "halves",
        "пол",
    ]
)
ONLY_WITH_MORE: Final = frozenset(["media", "medio", "meio", "meia", "mezzo", "mezza", "пол"])
"""Halves of something that follows, else other words."""
PARTS: Final = {
    3: "third thirds drittel tiers tercio tercios terzo terzi terço terços",
    10: "tenth tenths zehntel",
    4: "quarter quarters viertel quart quarts cuarto cuartos quarto quarti quartos",
    5: "fifth fifths fünftel cinquième cinquièmes quinto quintos quinti",
}
FACTORS: Final = {
    "×2": (
        "twice double doubled doubles doubling doppelt doppelte doppelten verdoppelt verdoppelte doublé "
        "doubla doble duplicó duplica doppio raddoppiò raddoppiato dobro dobrou duplicou вдвое удвоил"
    ),
    "×3": (
        "thrice triple tripled triples dreifach dreifache verdreifacht verdreifachte triplé tripla "
        "triplicó triplicou втрое"
    ),
    "×0.5": "halved halves halving halbiert halbierte dimezzò",
}
