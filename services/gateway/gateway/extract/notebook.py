"""Reads a Jupyter notebook: the text, code and printed results of its cells (nbformat 4)."""

import json
from collections.abc import Iterator
from typing import Any

from gateway.extract.encoding import decoded
from gateway.extract.plain import plain
from gateway.extract.source import Source


def notebook(source: Source) -> Iterator[str]:
    """Yield the cells; another JSON file under such a name is read as it is."""
    raw = source.whole()
    try:
        cells: list[dict[str, Any]] = json.loads("".join(decoded(source, [raw])))["cells"]
        parts = [part for cell in cells for part in _cell(source, cell)]
    except (ValueError, KeyError, TypeError, AttributeError):
        yield from plain(source.again(raw))
        return
    yield "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def _cell(source: Source, cell: dict[str, Any]) -> Iterator[str]:
    yield "".join(cell["source"])
    for output in cell.get("outputs", ()):
        shown: dict[str, Any] = output.get("data", {})
        pictures = sum(kind.startswith("image/") for kind in shown)
        source.note(pictures, "picture", "pictures")
        yield "".join(output.get("text", "" if pictures else shown.get("text/plain", "")))
        yield ": ".join(filter(None, (output.get("ename"), output.get("evalue"))))
