"""Reads the charts and diagrams of a document, which are parts of their own."""

from collections.abc import Iterator
from typing import Final

from gateway.extract.package import Package

_DRAWN: Final = {"chart": ("t", "v"), "chartEx": ("t", "v", "pt"), "diagramData": ("t",)}
"""Kinds of parts with text, and the elements that hold it."""


def drawn(package: Package, name: str) -> Iterator[str]:
    """Yield a line for each chart and diagram of a part: its words and values."""
    for link in package.relations(name).values():
        part = package.part(link.target) if link.kind in _DRAWN else None
        if part is not None:
            found = (" ".join((node.text or "").split()) for node in part.iter() if node.tag in _DRAWN[link.kind])
            yield " | ".join(value for value in found if value)
