"""Chooses the reader of an Office Open XML package by the kind of its main part."""

from collections.abc import Iterator
from functools import partial
from zipfile import ZipFile

from gateway.extract.package import Package
from gateway.extract.source import Source, Unreadable


def office(source: Source, archive: ZipFile, raw: bytes) -> Iterator[str]:
    """Yield the text of a document, presentation or workbook. Raises Unreadable for another package."""
    package = Package(archive)
    main = next(iter(package.linked("", "officeDocument")), "")
    root = None if main.endswith(".bin") else package.part(main)  # a binary workbook
    if main.endswith(".bin") or (root is not None and root.tag == "workbook"):
        from gateway.extract.sheets import comments_and_boxes, sheets

        if root is None:
            from gateway.extract.binary_cells import cells_of_xlsb, in_binary

            return sheets(source, raw, shown=in_binary(source, partial(cells_of_xlsb, package, main)))
        from gateway.extract.sheet_cells import shown_cells

        beside = comments_and_boxes(package, main, root)
        return sheets(source, raw, beside, shown_cells(source, package, main, root))
    if root is not None and root.tag == "document":
        from gateway.extract.word import word

        return word(source, package, main, root)
    if root is not None and root.tag == "presentation":
        from gateway.extract.slides import slides

        return slides(source, package, main, root)
    raise Unreadable("the archive or document format is not supported")
