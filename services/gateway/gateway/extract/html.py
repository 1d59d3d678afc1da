"""Reads HTML: its title and body, a row of a table of data as one line.

What a browser does not show is left out, and counted where it may have words: hidden parts, readings above signs.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gateway.extract.encoding import decoded, label_in
from gateway.extract.plain import charset_of
from gateway.extract.source import Source, Unreadable, numeral

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_HIDDEN: Final = ["script", "style", "noscript", "template", "annotation", "rp", "wbr"]
_READINGS: Final = "rt, rtc"
_UNSHOWN: Final = "body :is([hidden]:not([hidden=until-found]), [style*='display:none' i], [style*='display: none' i])"
_IS_XML = re.compile(r"\s*<\?xml\b|\s*<!doctype[^>]{0,200}\bxhtml\b", re.IGNORECASE)
_CLOSED = re.compile(r"""<([A-Za-z][\w:.-]{0,40}+)((?:[^<>"'/]++|"[^"<]*+"|'[^'<]*+'|/(?!>))*+)/>""")
"""An element of XML without content."""
_FRAMES = re.compile(r"</?(?:frameset|frame|noframes)\b[^>]*>", re.IGNORECASE)
"""Of a page whose text stands beside its frames, in ``<noframes>``."""
_VOID: Final = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
_INLINE: Final = [
    "a",
    "abbr",
    "b",
    "cite",
    "code",
    "em",
    "font",
    "i",
    "mark",
    "q",
    "small",
    "span",
    "strong",
    "sub",
    "sup",
    "u",
    *("ruby", "rb", "rbc", "math", "mrow", "mi", "mn", "mo", "mtext", "mfrac", "msup", "msub", "msqrt", "semantics"),
]
"""Tags that do not separate the text around them."""
_CELLS: Final = frozenset({"td", "th"})
_BLOCKS: Final = "table, div, p + p, ul, ol, pre, blockquote, h1, h2, h3, h4, h5, h6"
"""What the cells of a table of data do not have."""
_BOXES: Final = ("\u2610", "\u2612")
_PARAGRAPHS: Final = frozenset({"p", "div"})
_UNSEEN: Final = frozenset({"hidden", "submit", "button", "image", "reset", "file", "password"})


def html(source: Source) -> Iterator[str]:
    """Yield the text of a page. Raises Unreadable without a body."""
    yield page(source, source.whole(), declared=charset_of(source.media_type))


def page(source: Source, raw: bytes, *, declared: str = "") -> str:
    """Return the title and the text of a page in bytes. Raises Unreadable without a body."""
    from selectolax.lexbor import LexborHTMLParser

    text = "".join(decoded(source, [raw], declared=declared or label_in(raw)))
    if _IS_XML.match(text):  # HTML has no <script/>: it would hide all that follows
        text = _CLOSED.sub(lambda tag: tag[0] if tag[1].lower() in _VOID else f"<{tag[1]}{tag[2]}></{tag[1]}>", text)
    tree = LexborHTMLParser(text)
    if tree.body is None or tree.css_first("frameset") is not None:
        tree = LexborHTMLParser(_FRAMES.sub("", text))
    for frame in tree.css("iframe[srcdoc]"):
        inside = LexborHTMLParser(frame.attributes.get("srcdoc") or "").body
        frame.replace_with("" if inside is None else f" {inside.text(separator=' ', strip=True)} ")
    for part in tree.css("svg :is(title, desc, metadata, defs, symbol)"):
        part.decompose()
    tree.strip_tags(_HIDDEN)
    for unseen, one, many in (
        (_UNSHOWN, "hidden part of the page", "hidden parts of the page"),
        (_READINGS, "reading above a sign", "readings above signs"),
    ):
        parts = [part for part in tree.css(f":is({unseen}):not(:is({unseen}) *)") if part.text().strip()]
        for part in parts:
            part.decompose()
        source.note(len(parts), one, many)
    _fill_in(tree)
    _write_formulas(tree)
    for link in tree.css("a + a"):
        if link.prev is not None and link.prev.tag == "a":
            link.insert_before(" ")
    tree.unwrap_tags(_INLINE)
    tree.merge_text_nodes()
    _join_cells(tree)
    if tree.body is None:
        raise Unreadable("the HTML has no body")
    title = tree.css_first("title")
    heading = "" if title is None else f"{title.text(strip=True)}\n\n"
    lines = tree.body.text(separator="\n", strip=True).split("\n")
    return heading + "\n".join(line for line in lines if line.strip())


def _fill_in(page: "LexborHTMLParser") -> None:
    """Write what a reader sees and no text node holds: the values of fields, ticks, and the numbers of lists."""
    for field in page.css("input"):
        kind, value = field.attributes.get("type") or "text", field.attributes.get("value") or ""
        is_box = kind in ("checkbox", "radio")
        field.replace_with(_BOXES["checked" in field.attributes] if is_box else "" if kind in _UNSEEN else value)
    for chosen in page.css("option[selected]"):
        if chosen.child is not None:
            chosen.child.insert_before(f"{_BOXES[True]} ")
    for listed in page.css("ol"):
        start, kind = listed.attributes.get("start") or "1", listed.attributes.get("type") or "1"
        items = (item for item in listed.iter() if item.tag == "li")
        for number, item in enumerate(items, start=int(start) if start.isdecimal() else 1):
            first = item.child
            while first is not None and first.tag in _PARAGRAPHS and first.child is not None:
                first = first.child
            if first is not None:
                first.insert_before(f"{numeral(number, kind)}. ")


def _write_formulas(page: "LexborHTMLParser") -> None:
    """Write powers, indexes and fractions as they are typed: else ten to the sixth were 106."""
    for power in page.css("sup"):
        before = "" if power.prev is None else power.prev.text(deep=True)
        if before[-1:].isdigit() and power.text().strip("-\u2212").isdecimal():
            power.insert_before("^")
    for kind, between in (("mfrac", "/"), ("msup", "^"), ("msub", "_")):
        for formula in page.css(f"{kind} > :nth-child(2)"):
            formula.insert_before(between)


def _join_cells(page: "LexborHTMLParser") -> None:
    """Make each row of a table one line, its cells in their order; tables that lay out a page stay as they are."""
    for row in page.css("tr"):
        cells = [cell for cell in row.iter() if cell.tag in _CELLS]
        if cells and not any(cell.css_first(_BLOCKS) is not None for cell in cells):
            row.replace_with(" | ".join(" ".join(cell.text(separator=" ").split()) for cell in cells))
