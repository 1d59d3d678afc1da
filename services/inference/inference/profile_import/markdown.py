"""Finds the fenced code blocks of a Markdown page. Source: CommonMark 0.31, section 4.5."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENING = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\r\n]*?)[ \t]*\r?\n?$")
_LINE = re.compile(r"[^\n]*\n|[^\n]+$")


@dataclass(frozen=True, slots=True)
class Block:
    """One block. ``label`` is the last line of text before it: a heading, or what introduces it.

    ``text`` ends before the line end in front of the closing fence; all other line ends are the page's own.
    """

    language: str
    label: str
    text: str
    line: int


def fenced_blocks(page: str) -> Iterator[Block]:
    """Yield the page's blocks, in order. A block without an end extends to the page's end."""
    lines = _LINE.findall(page)
    label, position = "", 0
    while position < len(lines):
        opening = _OPENING.match(lines[position])
        if opening is None:
            label = lines[position].strip() or label
            position += 1
            continue
        start = position + 1
        fence = opening["fence"]
        closing = re.compile(rf"^ *{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\r?\n?$")
        end = next((number for number in range(start, len(lines)) if closing.match(lines[number])), len(lines))
        yield _block(lines[position + 1 : end], opening, label, position + 1)
        position = end + 1


def _block(lines: list[str], opening: re.Match[str], label: str, line: int) -> Block:
    indent = len(opening["indent"])
    text = "".join(re.sub(rf"^ {{0,{indent}}}", "", each) for each in lines)
    language = opening["info"].split(maxsplit=1)[0].lower() if opening["info"] else ""
    return Block(language, label, re.sub(r"\r?\n\Z", "", text), line)
