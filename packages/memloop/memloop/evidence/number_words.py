"""The words of numbers in English, German, French, Spanish, Italian, Portuguese, Russian, Dutch, Swedish, Polish,
Danish, Norwegian, Turkish and Czech.

A dash stands where a row has no word.
"""

from typing import Final

_FROM_TWO: Final = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen/zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn "
    "sechzehn siebzehn achtzehn neunzehn/deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze "
    "quinze seize/dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
    "diecisiete dieciocho diecinueve/due tre quattro cinque sei sette otto nove dieci undici dodici tredici "
    "quattordici quindici sedici diciassette diciotto diciannove/dois três quatro cinco seis sete oito nove dez "
    "onze doze treze catorze quinze dezesseis dezessete dezoito dezenove/два три четыре пять шесть семь восемь "
    "девять десять одиннадцать двенадцать тринадцать четырнадцать пятнадцать шестнадцать семнадцать восемнадцать "
    "девятнадцать/twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien "
    "zeventien achttien negentien/två tre fyra fem sex sju åtta nio tio elva tolv tretton fjorton femton sexton "
    "sjutton arton nitton/dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście "
    "trzynaście czternaście piętnaście szesnaście siedemnaście osiemnaście dziewiętnaście/- tre fire fem seks syv "
    "otte ni ti elleve tolv tretten fjorten femten seksten sytten atten nitten/- tre fire fem seks sju åtte ni ti "
    "elleve tolv tretten fjorten femten seksten sytten atten nitten/duas - - - - - - - - - - - quatorze - "
    "dezasseis dezassete - dezanove/две трёх четырёх пяти шести семи восьми девяти десяти одиннадцати двенадцати "
    "тринадцати четырнадцати пятнадцати шестнадцати семнадцати восемнадцати девятнадцати/dwie trzech czterech "
    "pięciu sześciu siedmiu ośmiu dziewięciu dziesięciu/dwóch - - - - - - - - jedenastu dwunastu trzynastu "
    "czternastu piętnastu szesnastu siedemnastu osiemnastu dziewiętnastu/iki üç dört beş altı yedi sekiz dokuz - "
    "onbir oniki onüç ondört onbeş onaltı onyedi onsekiz ondokuz/dva tři čtyři pět šest sedm osm devět deset "
    "jedenáct dvanáct třináct čtrnáct patnáct šestnáct sedmnáct osmnáct devatenáct/dvě tří čtyř pěti šesti sedmi "
    "osmi devíti deseti"
)
FROM_TWO: Final = tuple(_FROM_TWO.split("/"))
_TENS: Final = (
    "twenty thirty forty fifty sixty seventy eighty ninety/zwanzig dreissig vierzig fünfzig sechzig siebzig achtzig "
    "neunzig/vingt trente quarante cinquante soixante - quatre-vingt/veinte treinta cuarenta cincuenta sesenta setenta "
    "ochenta noventa/venti trenta quaranta cinquanta sessanta settanta ottanta novanta/vinte trinta quarenta cinquenta "
    "sessenta setenta oitenta noventa/двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят "
    "девяносто/twintig dertig veertig vijftig zestig zeventig tachtig negentig/tjugo trettio fyrtio femtio sextio "
    "sjuttio åttio nittio/dwadzieścia trzydzieści czterdzieści pięćdziesiąt sześćdziesiąt siedemdziesiąt osiemdziesiąt "
    "dziewięćdziesiąt/tyve tredive fyrre halvtreds - halvfjerds firs halvfems/tjue tretti førti femti seksti sytti "
    "åtti nitti/yirmi otuz kırk elli altmış yetmiş seksen doksan/dvacet třicet čtyřicet padesát šedesát sedmdesát "
    "osmdesát devadesát/dwudziestu trzydziestu czterdziestu pięćdziesięciu sześćdziesięciu siedemdziesięciu "
    "osiemdziesięciu dziewięćdziesięciu/двадцати тридцати сорока пятидесяти шестидесяти семидесяти восьмидесяти"
)
TENS: Final = tuple(_TENS.split("/"))
_HUNDREDS: Final = (
    "hundert doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos/cien "
    "duzentos trezentos quatrocentos quinhentos seiscentos setecentos oitocentos novecentos/cem doscientas trescientas "
    "cuatrocientas quinientas seiscientas setecientas ochocientas novecientas/сто двести триста четыреста пятьсот "
    "шестьсот семьсот восемьсот девятьсот/sto dwieście trzysta czterysta pięćset sześćset siedemset osiemset "
    "dziewięćset/stu dwustu trzystu czterystu pięciuset sześciuset siedmiuset ośmiuset dziewięciuset/ста двухсот "
    "трёхсот четырёхсот пятисот шестисот семисот восьмисот девятисот/- duzentas trezentas quatrocentas quinhentas "
    "seiscentas setecentas oitocentas novecentas"
)
HUNDREDS: Final = tuple(_HUNDREDS.split("/"))
VEINTI: Final = (
    "veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve",
    "veintiún",
    "veintiuna",
)
_ORDINALS: Final = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth/premier deuxième troisième quatrième "
    "cinquième sixième septième huitième neuvième dixième onzième douzième treizième quatorzième quinzième "
    "seizième - - - vingtième/première seconde/primero segundo tercero cuarto quinto sexto séptimo octavo noveno "
    "décimo undécimo duodécimo/primer - tercer/unième/primo secondo terzo quarto quinto sesto settimo ottavo nono "
    "decimo/primeiro segundo terceiro quarto quinto sexto sétimo oitavo nono/eerste tweede derde vierde vijfde "
    "zesde zevende achtste negende tiende elfde twaalfde/första andra tredje fjärde femte sjätte sjunde åttonde "
    "nionde tionde elfte tolfte trettonde fjortonde femtonde sextonde sjuttonde artonde nittonde tjugonde/første - "
    "- fjerde - sjette syvende ottende niende - ellevte tolvte/birinci ikinci üçüncü dördüncü beşinci altıncı "
    "yedinci sekizinci dokuzuncu onuncu onbirinci onikinci onüçüncü ondördüncü onbeşinci onaltıncı onyedinci "
    "onsekizinci ondokuzuncu yirminci"
)
ORDINALS: Final = tuple(_ORDINALS.split("/"))
ORDINAL_TENS: Final = (
    "- vigésimo trigésimo cuadragésimo quincuagésimo sexagésimo septuagésimo octogésimo nonagésimo",
    "- - - quadragésimo quinquagésimo - setuagésimo",
    "- twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth",
    "- vingtième trentième quarantième cinquantième soixantième",
)
STEMS_OF_ORDINALS: Final = (
    ("erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft", "e er es en em"),
    (("перв втор трет четвёрт пят шест седьм восьм девят десят одиннадцат двенадцат тринадцат четырнадцат "
      "пятнадцат шестнадцат семнадцат восемнадцат девятнадцат двадцат"),
     "ый ой ий ая ое ье ья ого ьего ей ьей ом ьем ую ью ых"),
    (("pierwsz drug trzec czwart piąt szóst siódm ósm dziewiąt dziesiąt jedenast dwunast trzynast czternast "
      "piętnast szesnast siedemnast osiemnast dziewiętnast dwudziest"), "y i a ia e ie ego iego ej iej ym im ą ią"),
)  # fmt: skip
"""Ordinals by their stems and the endings of each."""
ONE: Final = "one bir jedno ein eine einen einem eins un une uno una um uma один одна een één jeden jedna"
STARTS: Final = (
    "mil mille cent ciento cento hundert tausend honderd duizend hundra tusen hundrede hundre tusind yüz bin tysiąc "
    "тысяча"
)
"""Scales that are numbers without one before them."""
OTHER_WORDS: Final = (
    "bir jedno fire ti ni yedi bin yüz kırk one ein eine einen einem eins un une uno una um uma один одна een één "
    "jeden jedna due dos sei otto once elf seize sept six tre sex sexton tio fem sto первый acht achte achten achter "
    "cent cents cento ciento cien mil mille mila hundert tausend hundred thousand honderd duizend hundra tusen first "
    "second premier première seconde primero primer primera segundo segunda cuarto cuarta quinta quinto primo prima "
    "secondo seconda quarto quarta nona nono sexta terza terzo primeiro primeira erste erster erstes ersten erstem сто "
    "första andra drugi druga drugie"
)
"""Numbers, and other words as well."""
HALF: Final = (
    "half mezz halb halbe halber halbes halben hälfte moitié demi demie mitad metà mezzo mezza metade meia meio media "
    "medio половина половину половины половине половиной halves půl пол halve helft halv halva halvt hälften pół "
    "połowa połowę połowy"
)
ZERO: Final = "zero null zéro cero nul noll nula sıfır ноль"
POINT: Final = "point komma virgule virgola coma vírgula przecinek virgül запятая"
"""What is said for the mark of decimals: ``four point five``."""
ONLY_WITH_MORE: Final = "mezz media medio meio meia mezzo mezza пол"
"""Halves of something that follows, else other words."""
PARTS: Final = {
    3: ("third thirds drittel dritteln tiers tercio tercios tercera terceras terzo terzi terço terços derde "
        "tredjedel tredjedelar trzecia trzecie trzecich треть трети третей"),
    4: ("quarter quarters viertel vierteln quart quarts cuarto cuartos cuarta cuartas quarto quarti quartos kwart "
        "fjärdedel fjärdedelar czwarta czwarte czwartych четверть четверти"),
    5: ("fifth fifths fünftel fünfteln cinquième cinquièmes quinto quintos quinti quinta quintas vijfde femtedel "
        "femtedelar piąta piąte piątych пятая пятых пятые"),
    6: "sixth sixths sechstel sixième sixièmes sexto sextos sesto sesti zesde sjättedel шестая шестых",
    8: "eighth eighths achtel huitième huitièmes octavo octavos ottavo ottavi achtste восьмая восьмых",
    10: ("tenth tenths zehntel dixième dixièmes décimo décimos décima décimas decimo decimi tiende tiondel tiondelar "
        "dziesiąta dziesiąte dziesiątych десятая десятых"),
}  # fmt: skip
WHOLE_PARTS: Final = {
    "3/2": "anderthalb полтора полторы anderhalf anderhalve halvanden halvannen eineinhalb półtora półtorej",
    "3/4": "dreiviertel driekwart",
    "1/4": "ćwierć четверть",
    "1/3": "треть",
}
"""Parts that are one word."""
FACTORS: Final = {
    "×2": ("twice double doubled doubles doubling doppelt doppelte doppelten verdoppelt verdoppelte doublé doubla "
        "doublée doublent double doble duplicó duplicado duplica doppio doppia raddoppiò raddoppiato raddoppiata "
        "dobro dobrou duplicou dobrado вдвое удвоил удвоила удвоили удвоилась удвоился удвоилось verdubbeld "
        "verdubbelde dubbel dubbele tweemaal dubbelt dubbla fördubblades fördubblats dwukrotnie podwoił podwoiła "
        "podwoiło"),
    "×3": ("thrice triple tripled triples tripling dreifach dreifache verdreifacht verdreifachte triplé triplée "
        "tripla triplo triplicó triplicado triplicato triplicou втрое утроил утроила утроилась утроился утроилось "
        "verdrievoudigd verdrievoudigde driemaal tredubbelt tredubblades trzykrotnie potroił potroiła potroiło"),
    "×4": "quadruple quadrupled vierfach vervierfacht quadruplé cuádruple cuadruplicó quadruplicou вчетверо",
    "×0.5": "halved halves halving halbiert halbierte dimezzò dimezzato halveerde gehalveerd halverades",
}  # fmt: skip
