"""Reads EPUB: title and authors, then the chapters in the order of its spine."""

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote
from zipfile import ZipFile

from gateway.extract.html import page
from gateway.extract.package import parsed, words
from gateway.extract.source import Source, Unreadable, place


def book(source: Source, archive: ZipFile) -> Iterator[str]:
    """Yield the title and the chapters. Raises Unreadable for a book that is locked."""
    root = next(parsed(archive, "META-INF/container.xml").iter("rootfile")).get("full-path", "")
    package, folder = parsed(archive, root), posixpath.dirname(root)
    items = {item.get("id", ""): item for item in package.iter("item")}
    spine = [items[ref.get("idref", "")] for ref in package.iter("itemref") if ref.get("idref", "") in items]
    paths = [posixpath.normpath(posixpath.join(folder, unquote(item.get("href", "")))) for item in spine]
    if "META-INF/encryption.xml" in archive.NameToInfo:  # of fonts, often
        locked = parsed(archive, "META-INF/encryption.xml").iter("CipherReference")
        if not {unquote(reference.get("URI", "")) for reference in locked}.isdisjoint(paths):
            raise Unreadable("the book is locked against copying")
    metadata = next(package.iter("metadata"), package)
    about = [words(said) for kind in ("title", "creator") for said in metadata.findall(kind)]
    yield "".join(f"{line}\n" for line in about if line)
    for number, path in enumerate(paths, start=1):
        if path in archive.NameToInfo:
            text = page(source, archive.read(path))
        else:
            text = ""
            source.notes.append(f"chapter {number} is missing")
        yield place("chapter", number, text)
    source.note(sum(item.get("media-type", "").startswith("image/") for item in items.values()), "picture", "pictures")
