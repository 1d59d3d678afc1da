"""The site's navigation with its folders spelled out. Standard library only."""

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast


def with_folders(nav: Sequence[Any], pages: Sequence[str]) -> list[Any]:
    """The navigation with each pattern replaced by the pages that it fits and no other entry names, a README first.

    A pattern is a folder with a slash at its end, or has a ``*``. ``pages`` are the paths of all pages below ``docs``.
    """
    named = set(entries(nav))
    rest = [page for page in pages if page not in named]
    return [filled for entry in nav for filled in _filled(entry, rest)]


def entries(nav: Any) -> Iterator[str]:
    """The paths in a navigation, whatever their depth."""
    if isinstance(nav, str):
        yield nav
    else:
        parts: Iterable[Any] = cast("dict[str, Any]", nav).values() if isinstance(nav, dict) else nav
        for part in parts:
            yield from entries(part)


def _filled(entry: str | dict[str, Any], pages: Sequence[str]) -> Iterator[Any]:
    if isinstance(entry, str):
        yield from _fitting(entry, pages) if _is_pattern(entry) else (entry,)
        return
    for title, inside in entry.items():
        if isinstance(inside, str) and not _is_pattern(inside):
            yield {title: inside}
        else:
            parts = [inside] if isinstance(inside, str) else inside
            yield {title: [one for part in parts for one in _filled(part, pages)]}


def _is_pattern(entry: str) -> bool:
    return entry.endswith("/") or "*" in entry


def _fitting(entry: str, pages: Sequence[str]) -> list[str]:
    pattern = f"{entry}*" if entry.endswith("/") else entry
    found = (page for page in pages if fnmatch.fnmatchcase(page, pattern))
    return sorted(found, key=lambda page: (not page.endswith("README.md"), page))
