"""Words and letters by which a text of another language than English shows."""

from typing import Final

_WORDS: Final = {
    "basque": """
        da dira eta du dut duzu zuen zen dago nire zure hau hori zer nor non noiz bat baina ere dute zuten
    """,
    "catalan": """
        el els la les un una uns unes de del dels al als amb per que què qui quan on és són era va vaig ha he
        em et es li meu meva teu seva i però molt quin quina
    """,
    "czech": """
        a je jsou jsem jsi byl byla bylo byli se si že ve na do od pro při jak kde kdy kdo co který která
        které můj moje tvůj jeho její ale také má mám mě ji ho mu jako
    """,
    "danish": """
        og er jeg det en et på til af med for som har var havde han hun vi de den min din hans hendes hvad
        hvor hvornår hvem hvilken fra om også men sig mig dig skal kan blev
    """,
    "dutch": """
        de het een en van ik je hij zij ze wij we is zijn was waren heeft heb hebben had met voor op te aan
        naar uit bij door maar ook wat waar wie wanneer welke hoe mijn jouw haar dat dit die er om als wordt
    """,
    "esperanto": """
        la kaj estas estis mi vi li ŝi ĝi ni ili mia via lia ŝia de al en kun por sur pri kio kie kiam kiu
        kiel sed ankaŭ havas havis tio ke
    """,
    "estonian": """
        ja on oli olen oled mina ma sina sa tema ta me te nad minu sinu see seda mis kus kes kuna millal kui
        aga ka ning et oma teda olid
    """,
    "finnish": """
        ja on oli ovat olen olet minä sinä hän me te he minun sinun hänen tämä se mitä missä kuka milloin mikä
        kun mutta myös että kanssa olivat joka mistä mihin minkä
    """,
    "french": """
        le la les un une des du de d l et est sont était à au aux en dans sur avec pour par qui que qu quoi où
        quand quel quelle je j tu il elle nous vous ils elles mon ma mes ton ta sa ses son leur ce cette ces c
        s se m me ai as a ont fait comment mais aussi plus chez lui y
    """,
    "german": """
        der das den dem des ein eine einen einem einer und ist sind war waren ich du er sie es wir ihr mein
        meine meinen meinem meiner dein deine sein seine seinen ihre ihren mit von vom zu zum zur auf für im
        am bei nach aus wer wo wann wie welche welchen welches wieviel hat habe haben hatte wird wurde als
        auch aber sich mich dich dir mir
    """,
    "hungarian": """
        a az egy és van volt vagyok vagy ez hogy mi ki hol mikor melyik én te ő ők meg is de már csak mert
        nagyon akkor lett lesz neki nekem milyen hány
    """,
    "indonesian": """
        yang dan di ke dari ini itu dengan untuk pada adalah saya aku kamu dia kami kita mereka akan sudah
        telah apa siapa mana kapan bagaimana nya oleh juga tetapi ada
    """,
    "irish": """
        an na agus is tá bhí sé sí mé tú le ar i go do de ag mo cad cá cathain cé mar ach seo sin raibh atá
    """,
    "italian": """
        il lo la i gli le un uno una di del della dei delle al alla ai e è sono era ho hai ha hanno in nel
        nella con per su sul da dal dalla che chi cosa dove quando come quale mio mia miei tuo tua suo sua io
        tu lui lei noi si mi ti ci ma anche dell l d
    """,
    "lithuanian": """
        ir yra buvo aš tu jis ji mes jūs jie mano tavo jo jos kas kur kada kaip kuris kuri su į iš bet taip
        pat kad prie per apie už
    """,
    "norwegian": """
        og er jeg det en et på til av med for som har var hadde han hun vi de den min din hans hennes hva hvor
        når hvem hvilken fra om også men seg meg deg skal kan ble
    """,
    "polish": """
        i w z na do od dla przy jest są był była było byli się że jak gdzie kiedy kto co który która które mój
        moja moje twój jego jej ale też ma mam mnie ją go mu jako po czym jaki jaka jakie
    """,
    "portuguese": """
        o a os as um uma de do da dos das em na nos nas e é são era foi com para por pelo pela que quem qual
        quando onde como eu tu ele ela você nós eles elas meu minha seu sua ao à se me mas também tem tenho
        está estou
    """,
    "romanian": """
        și este sunt era eram un o unui unei de la în pe cu din pentru că ce cine unde când cum care eu tu el
        ea noi ei meu mea tău său lui dar mai am ai are au al a se îmi îi
    """,
    "spanish": """
        el la los las un una unos de del al y es son era fue está están estoy en con por para que quién qué
        cuál cuándo dónde cómo yo tú él ella nosotros ellos mi mis tu tus su sus se me te lo le les pero
        también muy he ha han hay tiene tengo como
    """,
    "swedish": """
        och är jag det en ett på till av med för som har var hade han hon vi de den min din hans hennes vad
        när vem vilken vilket från om också men sig mig dig ska kan blev att
    """,
    "turkish": """
        ve bir bu şu o ben sen biz siz onlar benim senin onun ne nerede kim hangi nasıl mi mı mu mü de da ile
        için gibi ama çok daha var oldu olan olarak
    """,
}
_ALSO_ENGLISH: Final = """
    a ada ai am an are as au bat care co com come d dan dell della den die dig do dos dove em er eu for go ha had
    han hat he ho hoe hon hun i ich in io is ja jag ke li lo m ma mar me men met mia min mis mit mu ne ni non nor
    on pat pe per pro qui s sa see sin son sur ta till ton tu un var vi via von war was we
"""

FUNCTION_WORDS: Final = {language: frozenset(words.split()) for language, words in _WORDS.items()}
"""Not searched for in a text of the language."""

TELLING: Final = {language: words - frozenset(_ALSO_ENGLISH.split()) for language, words in FUNCTION_WORDS.items()}
"""Words that count for the language. Those that English has too (German ``die``, French ``on``) do not."""

LETTERS: Final = {
    "catalan": "àçèéíïòóúü",
    "czech": "áčďéěíňóřšťúůýž",
    "danish": "åæø",
    "esperanto": "ĉĝĥĵŝŭ",
    "estonian": "äöõü",
    "finnish": "äö",
    "french": "àâçèéêëîïôùûœ",
    "german": "äöü",
    "hungarian": "áéíóöőúüű",
    "irish": "áéíóú",
    "italian": "àèéìòù",
    "lithuanian": "ąčęėįšųūž",
    "norwegian": "åæø",
    "polish": "ąćęłńóśźż",
    "portuguese": "àáâãçéêíóôõú",
    "romanian": "ăâîșțşţ",
    "spanish": "áéíñóúü",
    "swedish": "åäö",
    "turkish": "çğıöşü",
}
"""Letters beyond English ones, lower case."""
