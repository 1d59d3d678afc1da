"""``/console`` and ``/docs``: pages for people. They need no key; their scripts call the API with the user's key."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse

from memloop.wire.errors import NotFound
from memloop_service import TRAILING_SLASH, of_app

PACKAGED: Final = Path(__file__).parent / "static"
"""Where ``make console`` and the image put the built files."""
PAGES: Final = ("index.html", "docs.html")


@dataclass(frozen=True, slots=True)
class Console:
    """A built console, or none: then there are neither pages nor files."""

    pages: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """By their addresses; one that ends with ``.gz`` is another file compressed."""


def open_console(folder: Path | None = None) -> Console:
    """Read the pages of the console in the folder, by default the packaged one, and list its files."""
    root = folder or PACKAGED
    if not (root / PAGES[0]).is_file():
        return Console()
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    pages = {name: found.pop(name).read_text("utf-8") for name in PAGES if name in found}
    return Console(pages, found)


_BASE: Final = '<base href="./" />'
_PACKED: Final = ".gz"
_ASSETS: Final = "assets/"
_SAFE: Final = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'self'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_ASK_AGAIN: Final = "no-cache"
_NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Not built</title></head>
<body>
<h1>This gateway has no console</h1>
<p>The console's files were not built when the gateway started. Run <code>make console</code> in the repository and
restart the gateway. The build needs access to PyPI and to npm's registry.</p>
<p>The API works without the console. Its description is at <code>/openapi.json</code>.</p>
</body>
</html>
"""


ConsoleDep: TypeAlias = Annotated[Console, of_app("console")]
router = APIRouter(include_in_schema=False)


@router.get("/console")
async def open_start(request: Request, console: ConsoleDep) -> Response:
    """Serve the start page at ``/console/``; the page's relative addresses need the slash."""
    if request.scope.get(TRAILING_SLASH):
        return _page(console, "index.html", base="./")
    return RedirectResponse("console/", headers=_SAFE)


@router.get("/console/{path:path}")
async def open_path(path: str, request: Request, console: ConsoleDep) -> Response:
    """Serve a file of the console, or the start page, whose script finds the page that the address names."""
    file, packed = console.files.get(path), console.files.get(path + _PACKED)
    if file is not None:
        # the names of assets change with their content, so that a browser may keep them for ever
        headers = {**_SAFE, "Cache-Control": _FOR_EVER if path.startswith(_ASSETS) else _ASK_AGAIN}
        if packed is not None:
            headers["Vary"] = "Accept-Encoding"
        if packed is None or "gzip" not in request.headers.get("accept-encoding", ""):
            return FileResponse(file, headers=headers)
        media_type = FileResponse(file).media_type
        return FileResponse(packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=media_type)
    if path.startswith(_ASSETS):
        raise NotFound(f"The console has no file {path!r}.")
    # The way from the request's path to ``/console/``: one step up for each slash after it, as sent
    raw: bytes = request.scope["raw_path"]
    below = raw.split(b"/console/", 1)[-1].count(b"/") + bool(request.scope.get(TRAILING_SLASH))
    return _page(console, "index.html", base="../" * below or "./")


@router.get("/docs")
async def open_docs(request: Request, console: ConsoleDep) -> Response:
    """Serve the interactive page of the API."""
    return _page(console, "docs.html", base="../console/" if request.scope.get(TRAILING_SLASH) else "console/")


def _page(console: Console, name: str, *, base: str) -> Response:
    html, headers = console.pages.get(name), {**_SAFE, "Cache-Control": _ASK_AGAIN}
    if html is None:
        return HTMLResponse(_NOT_BUILT, status_code=404, headers=headers)
    return HTMLResponse(html.replace(_BASE, f'<base href="{base}" />', 1), headers=headers)
