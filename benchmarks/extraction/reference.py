"""The words of a file by an independent reader of its format: poppler for PDF, the XML itself for packed formats."""

import re
import subprocess
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterator
from email import message_from_bytes, policy
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

_CPU_S: Final = 60
"""Of CPU time: what is found must not depend on what else the machine does."""
_WORD: Final = re.compile(r"\w+")
_UNSEEN = re.compile("\xad\\n?|[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
"""Soft hyphens and marks of direction: no reader shows them, and they part no words."""
_CODE = re.compile("[\0-\x08\x0b\x0e-\x1f\x7f-\x9f]")
_CODED: Final = 0.05
_ACCENTED: Final = range(0xA1, 0x100)
_MOSTLY: Final = 0.5
_TORN: Final = 1 / 3
_SAME_LETTERS: Final = 0.99
_SEEN_LETTERS: Final = 0.5
"""Of the letters that a reader tears, the other one finds so many at least: it reads the same lines."""
_PARTS: Final = {
    ".docx": r"word/(document\d*|footnotes|endnotes|comments)\.xml",
    ".docm": r"word/(document\d*|footnotes|endnotes|comments)\.xml",
    ".pptx": r"ppt/slides/slide\d+\.xml",
    ".odt": r"content\.xml",
    ".odp": r"content\.xml",
    ".ods": r"content\.xml",
    ".xlsx": r"xl/sharedStrings\.xml",
    ".epub": r".*\.(xhtml|html|htm|xml)$",
}
_TEXT: Final = frozenset({"t", "v"})
_PARAGRAPHS: Final = frozenset({"p", "h", "tr", "table-row", "si", "br", "tab", "line-break"})


def words(text: str) -> list[str]:
    """The words of a text, folded alike for every reader."""
    return _WORD.findall(unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold())


def is_coded(text: str) -> bool:
    """Whether a text has so many control characters that it shows numbers of glyphs in the place of letters."""
    return len(_CODE.findall(text)) >= _CODED * max(1, sum(not letter.isspace() for letter in text))


def better(one: str, other: str) -> str:
    """Return the reading of a PDF to measure by, poppler's or PDFium's; an empty one where neither can be."""
    readings = [(text, len(words(text)), Counter("".join(words(text)))) for text in (one, other)]
    (more, _, many), (fewer, _, few) = sorted(readings, key=lambda reading: -reading[1])
    if (few & many).total() >= _SAME_LETTERS * max(few.total(), many.total()):
        return fewer
    if is_coded(more):
        return more
    if len(words(fewer)) < len(words(more)) and few.total() > many.total():
        more, many, fewer, few = fewer, few, more, many
    if _is_garbled(more) or (_is_torn(more) and few.total() >= _SEEN_LETTERS * many.total()):
        return "" if _is_garbled(fewer) or _is_torn(fewer) else fewer
    return more


def _is_garbled(text: str) -> bool:
    """Whether most letters are of the upper half of Latin-1, as where bytes of GBK or of a font are taken for it."""
    shown = [letter for letter in text if letter.isalnum() or ord(letter) in _ACCENTED]
    return sum(ord(letter) in _ACCENTED for letter in shown) > _MOSTLY * len(shown)


def _is_torn(text: str) -> bool:
    """Whether a third of the words are single Latin letters, as where a reader parts the letters of a turned line."""
    found = words(text)
    return sum(len(word) == 1 and "a" <= word <= "z" for word in found) > _TORN * len(found)


def reference(path: Path) -> str | None:
    """The text of a file; None where its reader comes to no end, and empty where no independent reader is known.

    A PDF's pages end with form feeds.
    """
    suffix = path.suffix.lower()
    try:
        if suffix == ".pdf":
            limited = ["prlimit", f"--cpu={_CPU_S}", "pdftotext", "-q", str(path), "-"]
            done = subprocess.run(limited, capture_output=True, check=False)
            return done.stdout.decode("utf-8", "replace") if done.returncode >= 0 else None
        if suffix in _PARTS:
            return "\n".join(_packed(path, re.compile(_PARTS[suffix]), suffix))
        if suffix == ".eml":
            return _mail(path.read_bytes())
        if suffix in (".html", ".htm"):
            return _page(path.read_bytes().decode("utf-8", "replace"))
        return path.read_text("utf-8") if suffix in (".csv", ".tsv", ".srt", ".vtt", ".md", ".txt") else ""
    except (OSError, ValueError, ET.ParseError, zipfile.BadZipFile, KeyError, RuntimeError):
        return ""


def _packed(path: Path, wanted: "re.Pattern[str]", suffix: str) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist(), key=lambda name: (len(name), name)):
            if not wanted.fullmatch(name) or name.startswith(("META-INF/", "OPS/toc")):
                continue
            raw = archive.read(name)
            if suffix == ".epub":
                yield _page(raw.decode("utf-8", "replace")) if b"<html" in raw else ""
                continue
            root = ET.fromstring(raw)
            yield "".join(_said(root, by_element=not suffix.startswith(".od")))


def _said(element: "ET.Element", *, by_element: bool) -> Iterator[str]:
    tag = element.tag.rpartition("}")[2]
    if tag in ("del", "moveFrom", "Fallback", "tracked-changes", "rPh", "settings"):
        return
    yield "\n" if tag in _PARAGRAPHS else ""
    if not by_element or tag in _TEXT:
        yield element.text or ""
    for child in element:
        yield from _said(child, by_element=by_element)
        yield (child.tail or "") if not by_element else ""


class _Shown(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style", "template", "svg", "noscript")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style", "template", "svg", "noscript")

    def handle_data(self, data: str) -> None:
        if self._hidden <= 0:
            self.parts.append(data)


def _page(text: str) -> str:
    parser = _Shown()
    parser.feed(text)
    return " ".join(parser.parts)


def _mail(raw: bytes) -> str:
    body = message_from_bytes(raw, policy=policy.default).get_body(("plain", "html"))
    content = "" if body is None else str(body.get_content())
    return _page(content) if body is not None and body.get_content_type() == "text/html" else content
