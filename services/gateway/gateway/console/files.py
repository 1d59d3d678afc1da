"""Finds the files of a built console and prepares its pages.

Every address in a page is relative to its ``<base>``. It is written per request from the depth of the request's path
alone, so that the pages work below any path prefix of a proxy, which the gateway need not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PACKAGED: Final = Path(__file__).parent / "static"
"""Where ``make console`` and the image put the built files."""
PAGES: Final = ("index.html", "docs.html")
_BASE: Final = '<base href="./" />'
_PACKED: Final = ".gz"


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file to serve; ``packed`` is the same compressed by gzip."""

    path: Path
    packed: Path | None
    is_hashed: bool
    """Whether the name changes with the content, so that a browser may keep the file for ever."""


@dataclass(frozen=True, slots=True)
class Console:
    """A built console, or none: then there are neither pages nor files."""

    pages: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, StaticFile] = field(default_factory=dict[str, StaticFile])

    def page(self, name: str, *, base: str) -> str | None:
        """Return the page's HTML with that base; None if the console was not built."""
        text = self.pages.get(name)
        return None if text is None else text.replace(_BASE, f'<base href="{base}" />', 1)


def open_console(folder: Path | None = None) -> Console:
    """Read the pages of the console in the folder, by default the packaged one, and list its files."""
    root = folder or PACKAGED
    if not (root / PAGES[0]).is_file():
        return Console()
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return Console(
        pages={name: found[name].read_text("utf-8") for name in PAGES if name in found},
        files={
            name: StaticFile(path, found.get(name + _PACKED), is_hashed=name.startswith("assets/"))
            for name, path in found.items()
            if name not in PAGES and not name.endswith(_PACKED)
        },
    )
