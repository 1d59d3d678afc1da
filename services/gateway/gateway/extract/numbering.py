"""The automatic numbers of a DOCX's paragraphs, which stand nowhere in its text: clause 4.2 (b)."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final

from gateway.extract.markup import Element
from gateway.extract.numerals import numeral
from gateway.extract.package import Package

_LEVELS: Final = 9
_KINDS: Final = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a list: where it starts, its kind of number, and the text around the numbers (``%1.%2``)."""

    start: int
    kind: str
    text: str
    is_legal: bool


@dataclass(slots=True)
class Numbering:
    """The lists of a document, and how far each has counted."""

    lists: dict[str, tuple[str, dict[int, Level]]]
    styles: dict[str, Element]
    _counts: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def of(cls, package: Package, main: str) -> "Numbering":
        """Read the lists and styles of a document."""
        styles, lists = dict[str, Element](), dict[str, tuple[str, dict[int, Level]]]()
        for name in package.linked(main, "styles"):
            part = package.part(name)
            styles = {style.get("styleId", ""): style for style in part.iter("style")} if part is not None else {}
        for name in package.linked(main, "numbering"):
            part = package.part(name)
            if part is None:
                continue
            abstract = {kind.get("abstractNumId", ""): kind for kind in part.iter("abstractNum")}
            for number in part.iter("num"):
                key = _value(number, "abstractNumId")
                levels = _levels(abstract[key]) if key in abstract else {}
                for override in number.iter("lvlOverride"):
                    levels |= _levels(override)
                lists[number.get("numId", "")] = (key, levels)
        return cls(lists, styles)

    def label(self, paragraph: Element) -> str:
        """Return the number in front of a paragraph, with a space, and count on; empty without one."""
        properties = paragraph.find("pPr")
        if properties is None:
            return ""
        number, level = self._list_of(properties)
        key, levels = self.lists.get(number, ("", {}))
        if level not in levels:
            return ""
        counts = self._counts[key]
        counts[level] = counts.get(level, levels[level].start - 1) + 1
        for deeper in [other for other in counts if other > level]:
            del counts[deeper]
        label = levels[level].text
        for shown in range(level + 1):
            if f"%{shown + 1}" in label and shown in levels:
                count = counts.setdefault(shown, levels[shown].start)
                kind = "decimal" if levels[level].is_legal else levels[shown].kind
                label = label.replace(
                    f"%{shown + 1}", f"{count:02}" if kind == "decimalZero" else numeral(count, _KINDS.get(kind, "1"))
                )
        if levels[level].kind == "bullet":
            label = "\u2022"
        return f"{label} " if label and levels[level].kind != "none" else ""

    def _list_of(self, properties: Element) -> tuple[str, int]:
        """Return the list and level of a paragraph, its own or its style's."""
        number, level, style = "", "", _value(properties, "pStyle")
        own: Element | None = properties
        for _ in range(_LEVELS):
            found = None if own is None else own.find("numPr")
            if found is not None:
                number, level = number or _value(found, "numId"), level or _value(found, "ilvl")
            if number or style not in self.styles:
                break
            own, style = self.styles[style].find("pPr"), _value(self.styles[style], "basedOn")
        return number, int(level) if level.isdecimal() else 0


def _levels(holder: Element) -> dict[int, Level]:
    return {
        int(level.get("ilvl", "0")): Level(
            start=int(_value(level, "start") or 1),
            kind=_value(level, "numFmt") or "decimal",
            text=_value(level, "lvlText"),
            is_legal=level.find("isLgl") is not None,
        )
        for level in holder.iter("lvl")
    }


def _value(element: Element, name: str) -> str:
    child = element.find(name)
    return "" if child is None else child.get("val", "")
