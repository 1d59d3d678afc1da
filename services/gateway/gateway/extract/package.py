"""Office Open XML packages: their parts, and the relations of these."""

import posixpath
from dataclasses import dataclass
from zipfile import ZipFile

from gateway.extract.markup import Element, parsed


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
        return {
            link.get("Id", ""): Relation(link.get("Type", "").rpartition("/")[2], _resolved(folder, link))
            for link in links
            if link.get("TargetMode") != "External"
        }

    def linked(self, name: str, kind: str) -> list[str]:
        """Return the parts of a kind to which a part links."""
        return [link.target for link in self.relations(name).values() if link.kind == kind]


def _resolved(folder: str, link: Element) -> str:
    target = link.get("Target", "")
    return target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
