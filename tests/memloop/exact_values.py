"""Statements beside documents that say the same, or differ in one value: made of patterns, or written one by one."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PATTERNS: Final = {
    "en": (
        "Revenue of Acme changed by {} in spring.",
        "The log of Acme shows {} for the north station.",
        "Acme wrote down {} as the last figure.",
    ),
    "de": (
        "Der Umsatz von Acme änderte sich im Frühling um {}.",
        "Das Protokoll von Acme zeigt {} für die Station.",
        "Acme notierte {} als letzten Wert.",
    ),
    "fr": (
        "Le chiffre de Acme a changé de {} au printemps.",
        "Le journal de Acme montre {} pour la station.",
        "Acme a noté {} comme dernière valeur.",
    ),
    "es": (
        "La cifra de Acme cambió en {} esta primavera.",
        "El registro de Acme muestra {} para la estación.",
        "Acme anotó {} como último valor.",
    ),
    "it": (
        "Il dato di Acme cambiò di {} in primavera.",
        "Il registro di Acme mostra {} per la stazione.",
        "Acme annotò {} come ultimo valore.",
    ),
    "pt": (
        "A receita de Acme mudou em {} na primavera.",
        "O registo de Acme mostra {} para a estação.",
        "Acme anotou {} como último valor.",
    ),
    "zh": ("今年春天公司的数字变化了{}。", "北站的记录显示{}。", "最后写下的数值是{}。"),
    "ja": ("春に会社の数字は{}変わった。", "北の駅の記録は{}を示す。", "最後に書いた値は{}である。"),
}
WITH_COMMAS: Final = frozenset(("de", "fr", "es", "it", "pt"))
PER_CENT: Final = {
    "en": "percent", "de": "Prozent", "fr": "pour cent", "es": "por ciento", "it": "per cento", "pt": "por cento",
    "zh": "%", "ja": "パーセント",
}  # fmt: skip
OTHER_NUMBERS: Final = {True: "Zuvor 2,75 und 1.234,5.", False: "Before: 2.75 and 1,234.5."}


@dataclass(frozen=True, slots=True)
class Pair:
    """A statement beside a document that says it, or not."""

    language: str
    document: str
    statement: str
    is_said: bool


def kept_pairs(name: str) -> Iterator[Pair]:
    """Yield the pairs of a file beside this one.

    ``values_written`` is by the hands that wrote the rules, in ten languages; ``values_by_others`` by people who never
    saw the code, in sixteen; ``values_of_causes`` has the kinds in which those were misjudged.
    """
    text = Path(__file__).with_name(f"{name}.tsv").read_text(encoding="utf-8")
    for language, said, document, statement in csv.reader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        yield Pair(language, document.replace("\\n", "\n").replace("\\t", "\t"), statement, is_said=said == "says")


def pairs_of_patterns() -> Iterator[Pair]:
    """Yield pairs of eighteen kinds of values in eight languages."""
    for language, patterns in PATTERNS.items():
        commas = language in WITH_COMMAS
        for number, (written, same, others) in enumerate(_values(language, commas=commas)):
            for offset in range(2):
                pattern = patterns[(number + offset) % len(patterns)]
                document = f"{OTHER_NUMBERS[commas]} {pattern.format(written)}"
                for form in dict.fromkeys((written, *same)):
                    yield Pair(language, document, pattern.format(form), is_said=True)
                for form in others:
                    yield Pair(language, document, pattern.format(form), is_said=False)


def _values(language: str, *, commas: bool) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Return values as a document writes them, other forms of the same, and other values."""
    cent, point, comma = PER_CENT[language], "," if commas else ".", "." if commas else ","
    return [
        (
            f"1{point}5 {cent}",
            (f"1{point}5 %", f"1{point}50 %"),
            (f"15 {cent}", "15 %", f"1{comma}500 %", f"-1{point}5 %"),
        ),
        ("-7", ("−7",), ("7", "-17", "-7.5")),
        ("7 %", (f"7 {cent}",), ("-7 %", "70 %", "7 ‰")),
        ("$500", ("500 $", "500 USD"), ("€500", "£500", "$5000", "$50", "500 %")),
        ("€300", ("300 €", "300 EUR"), ("$300", "300 CHF million", "€30")),
        (f"12{comma}500 km", ("12500 km", "12 500 km"), (f"12{point}500 km", f"12{point}5 km", "12500 m", "125 km")),
        (f"1{comma}234{comma}567", ("1234567", "1 234 567"), (f"1{comma}234{comma}568", "1234", f"1{comma}234")),
        ("7:30 p.m.", ("7:30 pm", "19:30"), ("7:30 a.m.", "8:30 p.m.", "7:03 p.m.")),
        ("14:05", ("2:05 pm",), ("14:50", "4:05", "2:05 am")),
        ("2021-03-04", (), ("2021-04-03", "2012-03-04", "2021-03-05")),
        ("v2.10", (), ("v2.1", "v2.11", "v1.10")),
        ("3.11.2", (), ("3.1.12", "3.11", "3.11.20")),
        ("½", ("1/2",), ("1½", "2", "⅓")),
        ("10⁶", (), ("106", "10⁹", "10⁻⁶")),
        (f"0{point}05", (), (f"0{point}5", f"0{point}005", "5")),
        ("5 kg", ("5 kg",), ("5 g", "5 lb", "50 kg")),
        ("５００", ("500",), ("5000", "50")),
        ("1990-1995", (), ("1990-1996", "1909-1995")),
    ]
