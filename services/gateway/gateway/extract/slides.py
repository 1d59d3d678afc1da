"""Reads PPTX: each slide with its tables, charts, diagrams, notes and comments."""

from collections.abc import Iterator
from typing import Final

from gateway.extract.package import Element, Package, drawn, words
from gateway.extract.source import Source, aside, numeral, place

_KINDS: Final = (("alphaLc", "a"), ("alphaUc", "A"), ("romanLc", "i"), ("romanUc", "I"))
_BESIDE: Final = {"notesSlide": "notes", "comments": "comment"}


def slides(source: Source, package: Package, main: str, root: Element) -> Iterator[str]:
    """Yield the slides in their order."""
    links, pictures = package.relations(main), 0
    ids = [slide.get("r:id", "") for slide in root.iter("sldId")]
    for number, name in enumerate((links[id_].target for id_ in ids if id_ in links), start=1):
        slide = package.part(name)
        if slide is None:
            continue
        lines = list(_lines(slide))
        lines += drawn(package, name)
        for link in package.relations(name).values():
            part = package.part(link.target) if link.kind in _BESIDE else None
            if part is not None:  # notes, without the number of the slide, or comments
                numbers = [one for one in part.iter("sp") if any(p.get("type") == "sldNum" for p in one.iter("ph"))]
                for shape in numbers:
                    shape.clear()
                beside = [words(comment) for comment in part.iter("cm")] or [" ".join(_lines(part))]
                lines += [aside(_BESIDE[link.kind], said) for said in beside if said.strip()]
        pictures += sum(1 for _ in slide.iter("pic"))
        yield place("slide", number, "\n".join(line for line in lines if line.strip()))
    source.note(pictures, "picture", "pictures")


def _lines(element: Element) -> Iterator[str]:
    """Yield the paragraphs with their automatic numbers, and the rows of tables, inside an element."""
    counts = dict[str, int]()
    for child in element:
        if child.tag == "tr":
            yield " | ".join(" ".join(_lines(cell)) for cell in child if cell.tag == "tc")
        elif child.tag == "p":
            text = "".join({"t": node.text or "", "br": " "}.get(node.tag, "") for node in child.iter())
            yield _label(child, counts) + text if text.strip() else text
        elif child.tag == "AlternateContent":
            yield from _lines(child[0] if len(child) else child)
        else:
            yield from _lines(child)


def _label(paragraph: Element, counts: dict[str, int]) -> str:
    """Return the automatic number of a paragraph with a space, and count on; empty without one."""
    level = next((found.get("lvl", "0") for found in paragraph.iter("pPr")), "0")
    for deeper in [other for other in counts if other > level]:
        del counts[deeper]
    numbered = next(paragraph.iter("buAutoNum"), None)
    if numbered is None:
        counts.pop(level, None)
        return ""
    start = numbered.get("startAt", "1")
    counts[level] = counts.get(level, (int(start) if start.isdecimal() else 1) - 1) + 1
    kind = numbered.get("type", "")
    return f"{numeral(counts[level], next((sign for name, sign in _KINDS if kind.startswith(name)), '1'))}. "
