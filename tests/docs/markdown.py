"""The parts of a Markdown page that the tests look at: links, anchors, code."""

import re
from functools import cache
from pathlib import Path

_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^(?: {4}|\t)(?! *[*-] ).*$", re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)


def links(text: str) -> list[str]:
    """The targets of all links and images outside code."""
    return _LINK.findall(_INLINE.sub("", _FENCED.sub("", text)))


def code(text: str) -> str:
    """All code of a page: inline, fenced and indented, one piece a line."""
    fenced = [match.group() for match in _FENCED.finditer(text)]
    prose = _FENCED.sub("", text)
    return "\n".join([*fenced, *_INDENTED.findall(prose), *_INLINE.findall(prose)])


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCED.sub("", text)):
        anchor = _slug(heading)
        found.add(anchor if anchor not in found else f"{anchor}-1")
    return found


def broken_links(page: Path, text: str) -> list[str]:
    """Relative links whose file or anchor does not exist."""
    return [link for link in links(text) if not re.match(r"[a-z]+:", link) and not _resolves(page, text, link)]


def _resolves(page: Path, text: str, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    if not target.exists():
        return False
    return not anchor or anchor in (_anchors_of(target) if path else anchors(text))


@cache
def _anchors_of(page: Path) -> set[str]:
    return anchors(page.read_text("utf-8"))


def _slug(heading: str) -> str:
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
