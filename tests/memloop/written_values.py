"""Statements beside documents that say the same, or differ in one value: written one by one, in ten languages.

The values are of many kinds: ordinals, dozens, halves, Roman numerals, telephone numbers, releases, numbers in words.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.memloop.exact_values import Pair

# language: (document, what it says too, what it does not say)
WRITTEN: Final[dict[str, tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]]] = {
    "en": (
        ("The pump at Lund lost 3 dB of pressure.", (), ("The pump at Lund lost 3 bar of pressure.",)),
        (
            "The invoice from Kessler fell due on 3 March 2024.",
            ("The invoice from Kessler fell due on March 3, 2024.",),
            (
                "The invoice from Kessler fell due on 4 March 2024.",
                "The invoice from Kessler fell due on 3 May 2024.",
            ),
        ),
        (
            "The invoice from Kessler fell due on the 3rd of March.",
            ("The invoice from Kessler fell due on the 3 of March.",),
            (),
        ),
        ("Rourke finished in 21st place.", (), ("Rourke finished in 12th place.",)),
        ("Rourke finished in second place.", ("Rourke finished in 2nd place.",), ("Rourke finished in third place.",)),
        (
            "The flat on Elm Street has twice the area of the old one.",
            (),
            ("The flat on Elm Street has half the area of the old one.",),
        ),
        ("Half the members of the Lodge voted.", (), ("A third of the members of the Lodge voted.",)),
        ("Doyle ordered a dozen lamps.", ("Doyle ordered 12 lamps.",), ("Doyle ordered 20 lamps.",)),
        ("Doyle ordered two dozen lamps.", (), ("Doyle ordered a dozen lamps.",)),
        ("Doyle ordered seven lamps.", ("Doyle ordered 7 lamps.",), ("Doyle ordered eight lamps.",)),
        ("Doyle ordered seventeen lamps.", (), ("Doyle ordered seventy lamps.",)),
        ("Doyle sold twenty-five lamps.", ("Doyle sold 25 lamps.",), ("Doyle sold twenty-six lamps.",)),
        ("Louis XIV slept at Blois.", (), ("Louis XVI slept at Blois.",)),
        (
            "Chapter IV describes the valve of the Orsk plant.",
            (),
            ("Chapter VI describes the valve of the Orsk plant.",),
        ),
        (
            "Call the Orsk plant at +44 20 7946 0958.",
            ("Call the Orsk plant at +442079460958.",),
            ("Call the Orsk plant at +44 20 7946 0985.",),
        ),
        ("Call the Orsk plant at (555) 013-4477.", (), ("Call the Orsk plant at (555) 013-4747.",)),
        (
            "The vat of Orsk must stay between 5 and 8 degrees.",
            (),
            ("The vat of Orsk must stay between 5 and 9 degrees.",),
        ),
        (
            "The vat of Orsk must stay at 5–8 °C.",
            ("The vat of Orsk must stay at 5-8 °C.",),
            ("The vat of Orsk must stay at 5–8 °F.",),
        ),
        ("The vat of Orsk cooled to minus forty degrees.", (), ("The vat of Orsk cooled to forty degrees.",)),
        ("The vat of Orsk cooled to –12 °C.", (), ("The vat of Orsk cooled to 12 °C.",)),
        ("Losses of (1,200) were booked by Orsk.", ("Losses of 1,200 were booked by Orsk.",), ()),
        ("Orsk raised 3.2 million euros.", (), ("Orsk raised 3.2 billion euros.",)),
        ("Orsk raised €3.2m.", ("Orsk raised €3.2 million.",), ("Orsk raised €3.2bn.",)),
        ("Orsk raised $3.2M.", (), ("Orsk raised $3.2K.",)),
        ("The tank of Orsk holds 40 gallons.", (), ("The tank of Orsk holds 40 liters.",)),
        ("The disk of Orsk holds 40 GB.", ("The disk of Orsk holds 40GB.",), ("The disk of Orsk holds 40 MB.",)),
        ("The line of Orsk carries 40 kV.", (), ("The line of Orsk carries 40 V.",)),
        ("The motor of Orsk draws 40 kW.", (), ("The motor of Orsk draws 40 MW.",)),
        ("The yard of Orsk covers 40 m².", ("The yard of Orsk covers 40 m2.",), ("The yard of Orsk covers 40 m³.",)),
        ("The yard of Orsk covers 40 ha.", (), ("The yard of Orsk covers 40 acres.",)),
        ("The nap of Orsk took 40 minutes.", (), ("The nap of Orsk took 40 hours.",)),
        (
            "Orsk moves at 40 km/h.",
            (),
            (
                "Orsk moves at 40 km/s.",
                "Orsk moves at 40 mph.",
            ),
        ),
        ("The bus of Orsk leaves at noon.", (), ("The bus of Orsk leaves at midnight.",)),
        ("The bus of Orsk leaves at 12:15.", (), ("The bus of Orsk leaves at 12:15 a.m.",)),
        ("The bus of Orsk leaves at 12:15 a.m.", ("The bus of Orsk leaves at 00:15.",), ()),
        (
            "Orsk ships release 4.0.1-rc2.",
            (),
            (
                "Orsk ships release 4.0.1-rc3.",
                "Orsk ships release 4.0.1.",
            ),
        ),
        ("Orsk owns more than 40 boats.", (), ("Orsk owns less than 40 boats.",)),
        ("Orsk owns at least 40 boats.", (), ("Orsk owns at most 40 boats.",)),
        ("Sales of Orsk rose by 4 points.", (), ("Sales of Orsk fell by 4 points.",)),
        ("The yield of Orsk rose by 4 percentage points.", (), ("The yield of Orsk rose by 4 percent.",)),
        ("Rates of Orsk rose 25 basis points.", (), ("Rates of Orsk rose 25 percent.",)),
        ("Mona is in the top 1% of Orsk.", (), ("Mona is in the top 10% of Orsk.",)),
        ("The scale of the Orsk map is 1:50,000.", (), ("The scale of the Orsk map is 1:25,000.",)),
        ("The score of Orsk was 3–1.", (), ("The score of Orsk was 1–3.",)),
        ("Orsk lost three quarters of its fleet.", (), ("Orsk lost a quarter of its fleet.",)),
        ("Orsk needs 2¾ cups.", ("Orsk needs 2.75 cups.",), ("Orsk needs 2¼ cups.",)),
        ("The 1980s were good to Orsk.", (), ("The 1990s were good to Orsk.",)),
        ("The 19th century was good to Orsk.", (), ("The 18th century was good to Orsk.",)),
        ("In Q3 the plant of Orsk closed.", (), ("In Q4 the plant of Orsk closed.",)),
        ("The act of Orsk, § 12(3), applies.", (), ("The act of Orsk, § 12(4), applies.",)),
        ("Orsk lies at 59.3° N.", (), ("Orsk lies at 59.3° S.",)),
        (
            "The reservoir above Tolna lost 3.75 meters of water between June and August.",
            (),
            (
                "The reservoir above Tolna lost 37.5 meters of water between June and August.",
                "The reservoir above Tolna lost 3.75 meters of water between June and October.",
            ),
        ),
        (
            "Balance of the Tolna account: -$1,204.50 at closing.",
            ("Balance of the Tolna account: -1204.50 dollars at closing.",),
            ("Balance of the Tolna account: $1,204.50 at closing.",),
        ),
        (
            "The clinic in Tolna opens at half past eight on weekdays.",
            (),
            ("The clinic in Tolna opens at half past nine on weekdays.",),
        ),
        (
            "The clinic in Tolna opens at 8:30 on weekdays.",
            ("The clinic in Tolna opens at 8:30 a.m. on weekdays.",),
            (),
        ),
        (
            "The clinic in Tolna closes at quarter to six on weekdays.",
            (),
            ("The clinic in Tolna closes at quarter past six on weekdays.",),
        ),
        (
            "Pope Pius IX visited the abbey of Tolna on the 21st of June 1857.",
            ("Pope Pius IX visited the abbey of Tolna on June 21, 1857.",),
            ("Pope Pius XI visited the abbey of Tolna on the 21st of June 1857.",),
        ),
        (
            "Reach the harbour office of Tolna at 020 7946 0018.",
            ("Reach the harbour office of Tolna at 02079460018.",),
            ("Reach the harbour office of Tolna at 020 7946 0081.",),
        ),
        (
            "Rainfall in Tolna was 12 to 15 inches that winter.",
            ("Rainfall in Tolna was 12–15 inches that winter.",),
            ("Rainfall in Tolna was 12 to 15 centimeters that winter.",),
        ),
        (
            "Version 2.14.0 of the Tolna firmware fixed the boiler leak.",
            (),
            ("Version 2.4.10 of the Tolna firmware fixed the boiler leak.",),
        ),
        (
            "Nearly two fifths of the Tolna orchard froze in the spring of that cold year.",
            (),
            ("Nearly three fifths of the Tolna orchard froze in the spring of that cold year.",),
        ),
        (
            "The new mast at Tolna is twice as tall as the old one.",
            (),
            ("The new mast at Tolna is three times as tall as the old one.",),
        ),
        (
            "Ms. Orban bought six dozen eggs in Tolna.",
            ("Ms. Orban bought 72 eggs in Tolna.",),
            ("Ms. Orban bought five dozen eggs in Tolna.",),
        ),
        (
            "In spring the old mill near the town of Orsk was closed by Ann for repairs.",
            ("In spring the mill near the town of Orsk was closed by Ann for repairs.",),
            (),
        ),
        (
            "The company Orsk, which is old, sold its last three ships in Riga in May.",
            ("The company Orsk sold its last 3 ships in Riga in May.",),
            (),
        ),
        ("The ship Orsk carries five thousand tons of coal.", ("The ship Orsk carries 5,000 tons of coal.",), ()),
        ("The ship Orsk carries 5 thousand tons of coal.", (), ("The ship Orsk carries 5 million tons of coal.",)),
        ("Orsk weighs 3 t and is 4 m long.", ("Orsk weighs 3 t and is 4 m long.",), ()),
        ("Orsk is 3 m long.", (), ("Orsk is 3 million long.",)),
        ("Ann lives in One Tree Hill since 1999.", ("Ann lives in One Tree Hill since 1999.",), ()),
        (
            "The cost of Orsk was $40 million.",
            (
                "The cost of Orsk was 40 million dollars.",
                "The cost of Orsk was $40,000,000.",
            ),
            (
                "The cost of Orsk was 40 million euros.",
                "The cost of Orsk was $40.",
            ),
        ),
        ("Call Orsk at +1 (212) 555-0143.", ("Call Orsk at +1 212 555 0143.",), ("Call Orsk at +1 212 555 0144.",)),
        (
            "The pages 12–15 are lost in Orsk.",
            ("The pages 12-15 are lost in Orsk.",),
            ("The pages 12-16 are lost in Orsk.",),
        ),
        (
            "Two of the twelve doors of Orsk are red.",
            ("2 of the 12 doors of Orsk are red.",),
            ("Twelve of the two doors of Orsk are red.",),
        ),
        (
            "Orsk opened two hundred and five doors.",
            ("Orsk opened 205 doors.",),
            (
                "Orsk opened two hundred doors.",
                "Orsk opened 5 doors.",
            ),
        ),
        ("Half a dozen doors of Orsk are red.", (), ("A dozen doors of Orsk are red.",)),
        ("Nearly half the doors of Orsk are red.", (), ("Nearly twice the doors of Orsk are red.",)),
    ),
    "de": (
        (
            "Die Anlage in Lund verlor zwölf Prozent.",
            ("Die Anlage in Lund verlor 12 Prozent.",),
            ("Die Anlage in Lund verlor zwanzig Prozent.",),
        ),
        (
            "Der Vertrag mit Kessler endet am 3. April 2025.",
            ("Der Vertrag mit Kessler endet am 3.4.2025.",),
            ("Der Vertrag mit Kessler endet am 4. April 2025.",),
        ),
        ("Der Vertrag mit Kessler endet am 03.04.2025.", ("Der Vertrag mit Kessler endet am 3.4.2025.",), ()),
        (
            "Das Treffen mit Kessler beginnt um 14.30 Uhr.",
            ("Das Treffen mit Kessler beginnt um 14:30 Uhr.",),
            ("Das Treffen mit Kessler beginnt um 13.40 Uhr.",),
        ),
        (
            "Das Lager von Kessler fasst 2,5 Tonnen.",
            (),
            (
                "Das Lager von Kessler fasst 25 Tonnen.",
                "Das Lager von Kessler fasst 2,5 Kilogramm.",
            ),
        ),
        ("Kessler verdoppelte die Zahl der Boote.", (), ("Kessler halbierte die Zahl der Boote.",)),
        ("Kessler besitzt ein Dutzend Boote.", ("Kessler besitzt zwölf Boote.",), ()),
        ("Die Miete von Kessler beträgt 1.250,- Euro.", ("Die Miete von Kessler beträgt 1250 Euro.",), ()),
        ("Die Miete von Kessler beträgt 1.250,50 Euro.", ("Die Miete von Kessler beträgt 1250,5 €.",), ()),
        ("Die Miete von Kessler beträgt 1.250 Euro.", (), ("Die Miete von Kessler beträgt 1.250 Franken.",)),
        ("Kessler zahlt 3 Mio. Euro.", ("Kessler zahlt 3 Millionen Euro.",), ("Kessler zahlt 3 Mrd. Euro.",)),
        ("Kessler wartet drei Wochen.", (), ("Kessler wartet drei Tage.",)),
        ("Kessler wartet 3 Wochen.", (), ("Kessler wartet 3 Tage.",)),
        ("Kessler wartet anderthalb Jahre.", (), ("Kessler wartet zweieinhalb Jahre.",)),
        (
            "Die Temperatur in Tolna sank nachts auf minus acht Grad Celsius.",
            ("Die Temperatur in Tolna sank nachts auf -8 °C.",),
            ("Die Temperatur in Tolna sank nachts auf acht Grad Celsius.",),
        ),
        (
            "Im ersten Quartal verkaufte Tolna 1.450 Räder für 2,3 Mio. Euro.",
            ("Im 1. Quartal verkaufte Tolna 1450 Räder für 2.300.000 Euro.",),
            ("Im zweiten Quartal verkaufte Tolna 1.450 Räder für 2,3 Mio. Euro.",),
        ),
        ("Der Zug nach Tolna fährt um halb acht ab.", (), ("Der Zug nach Tolna fährt um halb neun ab.",)),
        ("Kaiser Karl V. besuchte Tolna im Herbst.", (), ("Kaiser Karl IV. besuchte Tolna im Herbst.",)),
        (
            "Der Anteil der Pendler in Tolna stieg um 3,5 Prozentpunkte.",
            (),
            ("Der Anteil der Pendler in Tolna stieg um 3,5 Prozent.",),
        ),
        (
            "Das Seil von Tolna ist dreimal so lang wie das alte.",
            (),
            ("Das Seil von Tolna ist zweimal so lang wie das alte.",),
        ),
        (
            "Die Frist von Tolna endet am 30.06.2027.",
            ("Die Frist von Tolna endet am 30. Juni 2027.",),
            ("Die Frist von Tolna endet am 30. Juli 2027.",),
        ),
        ("Orsk zahlte zweitausend Euro.", (), ("Orsk zahlte dreitausend Euro.",)),
        ("Am 12. Mai 2020 zog Orsk um.", ("Am 12. Mai 2020 zog Orsk um.",), ()),
        ("Orsk hat zwei Drittel verloren.", (), ("Orsk hat ein Drittel verloren.",)),
        ("Das Lager von Orsk fasst 2 Mrd. Liter.", ("Das Lager von Orsk fasst 2 Milliarden Liter.",), ()),
    ),
    "fr": (
        (
            "Le train de Lund part à 18 h 45.",
            ("Le train de Lund part à 18:45.",),
            ("Le train de Lund part à 18 h 54.",),
        ),
        (
            "Le prix de Lund est de 1 250,50 €.",
            ("Le prix de Lund est de 1250,50 euros.",),
            ("Le prix de Lund est de 1 250,05 €.",),
        ),
        ("Lund perdit trois quarts de ses bateaux.", (), ("Lund perdit un quart de ses bateaux.",)),
        ("Lund possède une douzaine de bateaux.", (), ("Lund possède une dizaine de bateaux.",)),
        ("Le lot de Lund pèse quatre-vingt-dix kilos.", (), ("Le lot de Lund pèse quatre-vingts kilos.",)),
        ("Le lot de Lund coûte 3 milliards d'euros.", (), ("Le lot de Lund coûte 3 millions d'euros.",)),
        ("Lund naquit le 1er mai 1950.", ("Lund naquit le 1 mai 1950.",), ()),
        ("Lund naquit au XIXe siècle.", (), ("Lund naquit au XVIIIe siècle.",)),
        (
            "La réunion de Tolna commence à neuf heures et quart.",
            (),
            ("La réunion de Tolna commence à neuf heures et demie.",),
        ),
        (
            "Le mur de Tolna mesure 2,5 mètres de haut.",
            ("Le mur de Tolna mesure 2,5 m de haut.",),
            ("Le mur de Tolna mesure 25 mètres de haut.",),
        ),
        ("Il faisait moins quinze degrés à Tolna ce matin-là.", (), ("Il faisait quinze degrés à Tolna ce matin-là.",)),
        ("Tolna a vendu deux douzaines de chaises.", ("Tolna a vendu 24 chaises.",), ()),
        ("La dette de Tolna a doublé depuis 2019.", (), ("La dette de Tolna a triplé depuis 2019.",)),
        (
            "Le bail de Tolna court du 1er janvier au 31 mars 2024.",
            (),
            ("Le bail de Tolna court du 1er janvier au 31 mai 2024.",),
        ),
        ("Orsk a vendu soixante-dix bateaux.", ("Orsk a vendu 70 bateaux.",), ("Orsk a vendu soixante bateaux.",)),
        ("Orsk a payé 3 millions d’euros.", ("Orsk a payé 3 M€.",), ()),
    ),
    "es": (
        ("El depósito de Lund tiene doscientos litros.", (), ("El depósito de Lund tiene trescientos litros.",)),
        ("El depósito de Lund tiene 200 litros.", (), ("El depósito de Lund tiene 200 metros.",)),
        ("El piso de Lund mide el doble.", (), ("El piso de Lund mide la mitad.",)),
        ("El tren de Lund sale a las 7:15 de la tarde.", (), ("El tren de Lund sale a las 7:15 de la mañana.",)),
        ("Lund vive en el 4.º piso.", (), ("Lund vive en el 5.º piso.",)),
        ("Lund pagó 3 mil millones de euros.", (), ("Lund pagó 3 millones de euros.",)),
        ("Lund esperó 3 semanas.", (), ("Lund esperó 3 meses.",)),
        (
            "El vuelo a Tolna sale a las 8 de la noche.",
            ("El vuelo a Tolna sale a las 20:00.",),
            ("El vuelo a Tolna sale a las 8 de la mañana.",),
        ),
        (
            "Tolna gastó 1.200,75 euros en pintura.",
            ("Tolna gastó 1200,75 € en pintura.",),
            ("Tolna gastó 1.200,57 euros en pintura.",),
        ),
        ("El siglo XVIII fue próspero para Tolna.", (), ("El siglo XVII fue próspero para Tolna.",)),
        ("Dos tercios de los vecinos de Tolna votaron.", (), ("Tres cuartos de los vecinos de Tolna votaron.",)),
        ("Tolna está a quince kilómetros del mar.", ("Tolna está a 15 km del mar.",), ()),
        ("Orsk vendió treinta y cinco barcos.", ("Orsk vendió 35 barcos.",), ("Orsk vendió treinta barcos.",)),
    ),
    "it": (
        ("Il contratto di Lund scade il 5 giugno 2026.", (), ("Il contratto di Lund scade il 5 luglio 2026.",)),
        ("Lund ha comprato 3 etti di pane.", (), ("Lund ha comprato 3 chili di pane.",)),
        ("Lund ha comprato 3 kg di pane.", ("Lund ha comprato 3 chili di pane.",), ()),
        ("Lund ha venduto una dozzina di case.", ("Lund ha venduto dodici case.",), ()),
        ("La temperatura di Lund era di meno 12 gradi.", (), ("La temperatura di Lund era di 12 gradi.",)),
        (
            "La temperatura di Lund era di 12 gradi sotto zero.",
            (),
            ("La temperatura di Lund era di 12 gradi sopra zero.",),
        ),
        ("Lund ha 3 miliardi di euro.", (), ("Lund ha 3 milioni di euro.",)),
        ("Il museo di Tolna apre alle nove e mezza.", (), ("Il museo di Tolna apre alle dieci e mezza.",)),
        (
            "Il prestito di Tolna costa il 4,25 per cento.",
            ("Il prestito di Tolna costa il 4,25%.",),
            ("Il prestito di Tolna costa il 42,5%.",),
        ),
        ("Tolna comprò mezza dozzina di sedie.", ("Tolna comprò 6 sedie.",), ("Tolna comprò una dozzina di sedie.",)),
        ("La cisterna di Tolna contiene mille litri.", ("La cisterna di Tolna contiene 1000 litri.",), ()),
        ("Orsk ha venduto ventitré case.", ("Orsk ha venduto 23 case.",), ()),
    ),
    "pt": (
        (
            "A conta de Lund é de R$ 1.250,00.",
            (
                "A conta de Lund é de R$ 1250.",
                "A conta de Lund é de R$ 1250 reais.",
            ),
            ("A conta de Lund é de US$ 1.250,00.",),
        ),
        ("O lote de Lund pesa 3 toneladas.", (), ("O lote de Lund pesa 3 quilos.",)),
        ("O lote de Lund pesa três toneladas.", (), ("O lote de Lund pesa treze toneladas.",)),
        ("Lund mora no 3.º andar.", (), ("Lund mora no 2.º andar.",)),
        ("A sessão de Lund dura 45 minutos.", (), ("A sessão de Lund dura 45 segundos.",)),
        ("O comboio para Tolna parte ao meio-dia.", (), ("O comboio para Tolna parte à meia-noite.",)),
        ("O comboio para Tolna parte às 15h30.", ("O comboio para Tolna parte às 15:30.",), ()),
        ("Tolna perdeu um quinto da colheita.", (), ("Tolna perdeu um terço da colheita.",)),
        ("Tolna pagou 2,4 mil milhões de euros.", (), ("Tolna pagou 2,4 milhões de euros.",)),
        ("Tolna vendeu vinte e duas casas.", ("Tolna vendeu 22 casas.",), ()),
        ("Orsk vendeu trinta e cinco barcos.", ("Orsk vendeu 35 barcos.",), ("Orsk vendeu trinta e seis barcos.",)),
    ),
    "zh": (
        ("隆德的仓库有三百二十箱。", ("隆德的仓库有三百二十箱。",), ("隆德的仓库有三百一十箱。",)),
        ("隆德的收入是3亿元。", (), ("隆德的收入是3万元。",)),
        ("隆德的收入是3万元。", ("隆德的收入是30000元。",), ()),
        ("会议于2024年5月3日举行。", (), ("会议于2024年3月5日举行。",)),
        ("气温是零下5度。", ("气温是-5度。",), ("气温是5度。",)),
        ("列车下午3点出发。", (), ("列车上午3点出发。",)),
        ("托尔纳的面积是1.2万平方公里。", ("托尔纳的面积是12000平方公里。",), ("托尔纳的面积是1.2万平方米。",)),
        ("会议将于十二月三日上午九点召开。", ("会议将于12月3日上午9点召开。",), ("会议将于十二月三日下午九点召开。",)),
        ("今年的产量是去年的两倍。", (), ("今年的产量是去年的三倍。",)),
        ("合格率为百分之九十五。", ("合格率为95%。",), ("合格率为百分之八十五。",)),
        ("该公司去年收入3.5亿元。", ("该公司去年收入3.5亿元。",), ("该公司去年收入35亿元。",)),
    ),
    "ja": (
        ("倉庫には三百箱ある。", (), ("倉庫には四百箱ある。",)),
        ("売上は3億円だった。", (), ("売上は3万円だった。",)),
        ("会議は午後3時に始まる。", ("会議は午後3時に始まる。",), ("会議は午前3時に始まる。",)),
        ("気温は氷点下5度だった。", (), ("気温は5度だった。",)),
        ("会議は令和6年5月3日に開かれた。", (), ("会議は令和5年6月3日に開かれた。",)),
        ("彼は第3位だった。", (), ("彼は第2位だった。",)),
        ("駅までの距離は2.5キロである。", (), ("駅までの距離は25キロである。",)),
        ("会議は午後2時半に始まる。", ("会議は14時30分に始まる。",), ("会議は午後2時に始まる。",)),
        ("価格は3万5千円である。", ("価格は35000円である。",), ("価格は3万6千円である。",)),
        ("最低気温はマイナス10度だった。", (), ("最低気温は10度だった。",)),
        ("利用者は三分の一減った。", (), ("利用者は三分の二減った。",)),
        ("気温はマイナス5度だった。", ("気温は-5度だった。",), ()),
    ),
    "ru": (
        ("Завод Лунд потерял 3 тонны.", (), ("Завод Лунд потерял 3 килограмма.",)),
        ("Завод Лунд потерял 3 млн рублей.", (), ("Завод Лунд потерял 3 млрд рублей.",)),
        ("Завод Лунд потерял три тонны.", (), ("Завод Лунд потерял две тонны.",)),
        ("Поезд Лунд уходит в 7 часов вечера.", (), ("Поезд Лунд уходит в 7 часов утра.",)),
        ("Завод Лунд выпустил 5 тыс. машин.", ("Завод Лунд выпустил 5000 машин.",), ()),
    ),
    "ko": (
        ("룬드의 매출은 3억 원이다.", (), ("룬드의 매출은 3만 원이다.",)),
        ("회의는 오후 3시에 시작한다.", (), ("회의는 오전 3시에 시작한다.",)),
    ),
}


def written_pairs() -> Iterator[Pair]:
    """Yield all pairs, in the same order each time."""
    for language, documents in WRITTEN.items():
        for document, said, unsaid in documents:
            for statement in dict.fromkeys((document, *said)):
                yield Pair(language, document, statement, is_said=True)
            for statement in unsaid:
                yield Pair(language, document, statement, is_said=False)


def pairs_by_others() -> Iterator[Pair]:
    """Yield 3,427 pairs in sixteen languages by people who never saw the code."""
    return _kept("values_by_others.tsv")


def pairs_of_causes() -> Iterator[Pair]:
    """Yield pairs of the kinds in which those were misjudged."""
    return _kept("values_of_causes.tsv")


def _kept(name: str) -> Iterator[Pair]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    for language, said, document, statement in csv.reader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        yield Pair(language, document.replace("\\n", "\n").replace("\\t", "\t"), statement, is_said=said == "says")
