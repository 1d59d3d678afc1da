"""The code blocks of a page that the tests run: ``python``, ``bash``, and the output that a page shows after them.

A block ``text`` or ``json`` right after a block of code is what the code prints; ``…`` stands for any characters of a
line. A block ``sh`` holds commands that take minutes or another machine: it is not run.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

RUN: Final = ("python", "bash")
_BLOCK: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """A block of code, the line where it begins, and its output if the page shows it."""

    language: str
    code: str
    line: int
    output: str | None = None


def snippets(text: str) -> Iterator[Snippet]:
    """The blocks that are run, in their order."""
    blocks = [(match, match[2], _dedented(match[3], match[1])) for match in _BLOCK.finditer(text)]
    for (match, language, code), after in zip_longest(blocks, blocks[1:]):
        if language in RUN:
            shown = (
                after is not None and after[1] in ("text", "json") and not text[match.end() : after[0].start()].strip()
            )
            output = after[2] if after is not None and shown else None
            yield Snippet(language, code, text.count("\n", 0, match.start()) + 1, output)


def fits(shown: str, printed: str) -> bool:
    """Whether a program printed what the page shows; ``…`` is any text of a line, and a line ``…`` any lines."""
    pattern = "\n".join(_pattern(line) for line in _trimmed(shown).splitlines())
    return re.fullmatch(pattern, _trimmed(printed)) is not None


def _pattern(line: str) -> str:
    return ".*(?:\n.*)*?" if line == "…" else ".*".join(re.escape(part) for part in line.split("…"))


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _dedented(code: str, indent: str) -> str:
    return "\n".join(line.removeprefix(indent) for line in code.splitlines()) + "\n"
