"""What a reader of one format gets, and how it writes the places of its text and the numbers of lists."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import BinaryIO, Final

PAGE_END: Final = "\f"
"""Stands at the end of each page, as in a text for a printer; a text without one has no pages."""
PDF_WITHIN: Final = 1024
"""A PDF may begin with other bytes."""
_NAME_CHARS: Final = 100
_MAX_DEPTH: Final = 4
_NOTED_PAGES: Final = 20
_ROMAN: Final = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x")),
    *((9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_HIGHEST: Final = 100_000
_LETTERS: Final = 26
_MOST_LETTERS: Final = 9


class Unreadable(Exception):
    """No text can be extracted from the file; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file: its first block, the rest, and what its sender says of it.

    ``ocr`` names Tesseract's languages; it is empty where pictures are not read. ``notes`` collects what the text
    lacks. ``read`` chooses the reader of a file inside this one.
    """

    head: bytes
    rest: BinaryIO
    name: str
    media_type: str = ""
    ocr: str = ""
    read: "Callable[[Source], Iterator[str]]" = field(kw_only=True)
    depth: int = 0
    notes: list[str] = field(default_factory=list[str])

    def whole(self) -> bytes:
        """Return all bytes."""
        return self.head + self.rest.read()

    def again(self, raw: bytes) -> "Source":
        """Return the same file, whose bytes were read."""
        return replace(self, head=raw, rest=BytesIO())

    def attached(self, name: str, raw: Callable[[], bytes], *, media_type: str = "") -> str | None:
        """Return the text of a file inside this one. One that no parser reads is noted: it must not hide the rest."""
        if self.depth == _MAX_DEPTH:
            self.notes.append(f"attachment {name}: it lies too deep in other files")
            return None
        named = {"name": name.lower(), "media_type": media_type.lower()}
        try:
            inner = replace(self, head=raw(), rest=BytesIO(), depth=self.depth + 1, **named)
            return "".join(self.read(inner))
        except Exception as error:  # noqa: BLE001 - a parser may raise anything
            why = str(error) if isinstance(error, Unreadable) else "it is damaged"
            self.notes.append(f"attachment {name}: {why}")
            return None

    def note(self, left_out: int, one: str, many: str) -> None:
        """Note that the text lacks so many of something."""
        if left_out:
            self.notes.append(f"1 {one}" if left_out == 1 else f"{left_out} {many}")

    def note_pages(self, fault: str, numbers: Sequence[int]) -> None:
        """Note a fault of some pages, counted from 0."""
        if numbers:
            shown = ", ".join(str(number + 1) for number in numbers[:_NOTED_PAGES])
            self.notes.append(f"{fault}: {shown}{', ...' if len(numbers) > _NOTED_PAGES else ''}")


def aside(kind: str, text: str, author: str | None = None) -> str:
    """Return a note, a comment or an edge of a page, as it stands beside the text that it belongs to."""
    return f"[{kind} by {author}: {text}]" if author else f"[{kind}: {text}]"


def place(kind: str, number: int, text: str, *, title: str = "") -> str:
    """Return the text of a page, slide, sheet, chapter or mail: under its label, with the end of its page."""
    if not text.strip():
        return PAGE_END
    named = " ".join(title.split())[:_NAME_CHARS]
    label = f"{kind} {number}: {named}" if named else f"{kind} {number}"
    return f"[{label}]\n\n{text.replace(PAGE_END, chr(10))}\n\n{PAGE_END}"


def numeral(count: int, kind: str) -> str:
    """Return a number as ``kind`` writes one: ``a``, ``A``, ``i``, ``I`` or any digits."""
    if not 0 < count < _HIGHEST or kind not in ("a", "A", "i", "I"):
        return str(count)
    if kind in ("a", "A"):
        return chr(ord(kind) + (count - 1) % _LETTERS) * min(1 + (count - 1) // _LETTERS, _MOST_LETTERS)
    roman = ""
    for value, sign in _ROMAN:
        roman += sign * (count // value)
        count %= value
    return roman.upper() if kind == "I" else roman


def column(index: int) -> str:
    """Return the name of a spreadsheet's column, which are counted from 0: A to Z, then AA."""
    name, number = "", index + 1
    while number:
        number, rest = divmod(number - 1, _LETTERS)
        name = chr(ord("A") + rest) + name
    return name
