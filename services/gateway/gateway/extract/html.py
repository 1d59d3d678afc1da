"""Reads HTML: its title and body, a row of a table of data as one line."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gateway.extract.encoding import decoded
from gateway.extract.plain import charset_of
from gateway.extract.source import Source, Unreadable

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_HIDDEN: Final = ["script", "style", "noscript", "template", "svg"]
_INLINE: Final = ["a", "abbr", "b", "cite", "code", "em", "font", "i", "mark", "q", "small", "span", "strong", "u"]
"""Tags that do not separate the text around them."""
_CELLS: Final = frozenset({"td", "th"})
_BLOCKS: Final = "table, div, p + p, ul, ol, pre, blockquote, h1, h2, h3, h4, h5, h6"
"""What the cells of a table of data do not have."""
_CHARSET = re.compile(
    rb"<meta[^>]{0,200}charset=[\"']?([A-Za-z0-9_:.-]{1,40})|<\?xml[^>]{0,100}encoding=[\"']([A-Za-z0-9_:.-]{1,40})",
    re.IGNORECASE,
)


def html(source: Source) -> Iterator[str]:
    """Yield the text of a page. Raises Unreadable without a body."""
    raw = source.whole()
    declared = charset_of(source.media_type) or _said_by(raw)
    yield page_text("".join(decoded(source, [raw], declared=declared)))


def _said_by(raw: bytes) -> str:
    """Return the encoding that the page names; UTF-16 cannot be what a page says in ASCII."""
    named = _CHARSET.search(raw, 0, 4096)
    label = "" if named is None else (named[1] or named[2]).decode()
    return "utf-8" if label.lower().startswith("utf-16") else label


def page_text(page: str) -> str:
    """Return the title and the text of a page. Raises Unreadable without a body."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(page)
    tree.strip_tags(_HIDDEN)
    tree.unwrap_tags(_INLINE)
    tree.merge_text_nodes()
    _join_cells(tree)
    if tree.body is None:
        raise Unreadable("the HTML has no body")
    title = tree.css_first("title")
    heading = "" if title is None else f"{title.text(strip=True)}\n\n"
    lines = tree.body.text(separator="\n", strip=True).split("\n")
    return heading + "\n".join(line for line in lines if line.strip())


def _join_cells(page: "LexborHTMLParser") -> None:
    """Make each row of a table one line, its cells in their order; tables that lay out a page stay as they are."""
    for row in page.css("tr"):
        cells = [cell for cell in row.iter() if cell.tag in _CELLS]
        if cells and not any(cell.css_first(_BLOCKS) is not None for cell in cells):
            row.replace_with(" | ".join(" ".join(cell.text(separator=" ").split()) for cell in cells))
