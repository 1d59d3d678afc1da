"""XML parts of packed documents, by the names of elements and attributes without their namespaces.

Strict and transitional Office Open XML differ only in namespaces, so one reader reads both.
"""

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
