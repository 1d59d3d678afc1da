"""Hooks of the documentation's build (``mkdocs.yml``): folders in the navigation, files outside ``docs``, routes.

A link of a page to a file outside ``docs`` leads to a copy of the file below ``source/``. The reference of the HTTP API
is made from the OpenAPI document that ``make docs`` writes. A page that loads something from another host fails the
build. All of it runs in the environment of ``requirements/docs.lock``.
"""

import json
import os
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
from navigation import with_folders
from routes_page import routes_page

ROOT: Final = Path(__file__).parents[2]
OPENAPI: Final = ROOT / "build/openapi.json"
ROUTES_PAGE: Final = "reference/http-api.md"
COPIES: Final = "source"
_LINK: Final = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<path>(?:\.\./)+[^)\s#]+)(?:#[^)\s]*)?\)")
_LOADED: Final = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=["'](?:https?:)?//[^>]*>""")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of routes and the copies of linked files, and put the folders' pages into the navigation."""
    document = json.loads(OPENAPI.read_text("utf-8"))
    files.append(File.generated(config, ROUTES_PAGE, content=routes_page(document)))
    for path in sorted(set(_linked_outside(files))):
        files.append(File.generated(config, _copy(path), abs_src_path=str(ROOT / path)))
    config.nav = with_folders(config.nav or [], [file.src_uri for file in files.documentation_pages()])
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links to files outside ``docs`` into links to their copies, and links to folders into plain text."""

    def replaced(match: re.Match[str]) -> str:
        path = _outside(page.file.src_uri, match["path"])
        if path is None:
            return match[0]
        if not (ROOT / path).is_file():
            return match["text"]
        return f"[{match['text']}]({posixpath.relpath(_copy(path), posixpath.dirname(page.file.src_uri) or '.')})"

    return _LINK.sub(replaced, markdown)


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Refuse a page that loads a script, a style or a picture from another host."""
    if loaded := _LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} loads from another host: {loaded[0]}")
    return output


def _linked_outside(files: Files) -> Iterator[str]:
    for file in files.documentation_pages():
        for link in _LINK.finditer(file.content_string):
            path = _outside(file.src_uri, link["path"])
            if path is not None and (ROOT / path).is_file():
                yield path


def _copy(path: str) -> str:
    """Where the site has that file. Markdown becomes text: its links are relative to its old place."""
    visible = path.removeprefix(".")  # mkdocs leaves hidden files out
    return f"{COPIES}/{visible}.txt" if path.endswith(".md") else f"{COPIES}/{visible}"


def _outside(page: str, link: str) -> str | None:
    """The path in the repository of what a page links to, or None when it is below ``docs``."""
    path = os.path.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return None if path.startswith(("docs/", "..")) else path
