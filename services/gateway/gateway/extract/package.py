"""Packed documents: their XML parts, by the names of elements and attributes without their namespaces.

Strict and transitional Office Open XML differ only in namespaces, so one reader reads both. Its packages
have parts, and relations between these.
"""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.etree.ElementTree import Element, fromstring
from zipfile import ZipFile

__all__ = ["Element", "parsed", "words"]
_RELATIONS: Final = "/relationships}"


def parsed(archive: ZipFile, name: str) -> Element:
    """Return the root of a part. Raises KeyError without the part, ParseError."""
    root = fromstring(archive.read(name))  # noqa: S314 - expat bounds entities, and opens nothing outside
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for key in [key for key in element.attrib if key.startswith("{")]:
            space, _, local = key.rpartition("}")
            prefix = "r:" if f"{space}}}".endswith(_RELATIONS) else ""
            element.attrib[prefix + local] = element.attrib.pop(key)
    return root


def words(element: Element) -> str:
    """Return all text inside an element as one line."""
    return " ".join(" ".join(element.itertext()).split())


@dataclass(frozen=True, slots=True)
class Relation:
    """A link of a part: the last word of its type, and the part that it leads to."""

    kind: str
    target: str


@dataclass(frozen=True, slots=True)
class Package:
    """The parts of a document."""

    archive: ZipFile

    def part(self, name: str) -> Element | None:
        """Return a part's root, or None without it."""
        return parsed(self.archive, name) if name in self.archive.NameToInfo else None

    def relations(self, name: str) -> dict[str, Relation]:
        """Return the links of a part inside the package, by id; those of the package for an empty name."""
        folder, _, file = name.rpartition("/")
        links = self.part(posixpath.join(folder, "_rels", f"{file}.rels"))
        if links is None:
            return {}
        found: dict[str, Relation] = {}
        for link in links:
            if link.get("TargetMode") != "External":
                target = link.get("Target", "")
                inside = posixpath.normpath(posixpath.join(folder, target))
                path = target.lstrip("/") if target.startswith("/") else inside
                found[link.get("Id", "")] = Relation(link.get("Type", "").rpartition("/")[2], path)
        return found

    def linked(self, name: str, kind: str) -> list[str]:
        """Return the names of the parts of a kind to which a part links."""
        return [link.target for link in self.relations(name).values() if link.kind == kind]

    def parts(self, name: str, kind: str) -> Iterator[Element]:
        """Yield the roots of these parts, as far as they are there."""
        return (part for target in self.linked(name, kind) if (part := self.part(target)) is not None)


_DRAWN: Final = {"chart": ("t", "v"), "chartEx": ("t", "v", "pt"), "diagramData": ("t",)}
"""Kinds of parts with text, and the elements that hold it."""


def drawn(package: Package, name: str) -> Iterator[str]:
    """Yield a line for each chart and diagram of a part: its words and values."""
    for link in package.relations(name).values():
        part = package.part(link.target) if link.kind in _DRAWN else None
        if part is not None:
            found = (" ".join((node.text or "").split()) for node in part.iter() if node.tag in _DRAWN[link.kind])
            yield " | ".join(value for value in found if value)
