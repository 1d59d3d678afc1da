"""Gives a PDF without its end a new one: PDFium reads no file without a catalog, which most have there.

The pages are those whose objects are there, in their order in the file; PDFium finds objects without their table.
"""

import re
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

_OBJECT = re.compile(rb"(?<!\d)(\d{1,9}) \d{1,5} obj\b")
_STREAM = re.compile(rb"\bstream\r?\n")
_PAGE = re.compile(rb"/Type\s{0,9}/Page\b")
_COUNT, _FIRST = (re.compile(rb"/%s (\d{1,9})\b" % name) for name in (b"N", b"First"))
_UNPACKED_BYTES: Final = 64 << 20


def with_end(raw: bytes) -> bytes | None:
    """Return the file with a catalog of its pages; None without any."""
    found = [*_OBJECT.finditer(raw)]
    starts = [*(one.start() for one in found), len(raw)]
    pages, unpacked, left = dict[int, None](), list[bytes](), _UNPACKED_BYTES
    for one, end in zip(found, starts[1:], strict=True):
        stream = _STREAM.search(raw, one.end(), end)
        head = raw[one.end() : stream.start() if stream else end]
        inside = [(int(one[1]), head)]
        if stream and b"/ObjStm" in head:
            inside = [*_unpacked(head, raw[stream.end() : end], left)]
            unpacked += (b"%d 0 obj\n%s\nendobj\n" % pair for pair in inside)
            left -= sum(len(text) for _, text in inside)
        pages |= dict.fromkeys(number for number, text in inside if _PAGE.search(text))
    if not pages:
        return None
    tree = 1 + max(max(pages), *(int(one[1]) for one in found))
    kids = b" ".join(b"%d 0 R" % number for number in pages)
    return b"".join(
        [
            *(raw, b"\nendstream\nendobj\n", *unpacked),
            b"%d 0 obj\n<</Type/Pages/Count %d/MediaBox[0 0 612 792]/Kids[%s]>>\nendobj\n" % (tree, len(pages), kids),
            b"%d 0 obj\n<</Type/Catalog/Pages %d 0 R>>\nendobj\n" % (tree + 1, tree),
            b"trailer\n<</Size %d/Root %d 0 R>>\nstartxref\n0\n%%%%EOF\n" % (tree + 2, tree + 1),
        ]
    )


def _unpacked(head: bytes, packed: bytes, most: int) -> Iterator[tuple[int, bytes]]:
    """Yield the objects of a stream of objects with their numbers, as far as it is there."""
    count, first = (int(found[1]) if (found := name.search(head)) else 0 for name in (_COUNT, _FIRST))
    try:
        data = zlib.decompressobj().decompress(packed, most) if most > 0 else b""
    except zlib.error:
        return
    numbers = [int(number) for number in data[:first].split()[: 2 * count] if number.isdigit()]
    places = sorted(zip(numbers[1::2], numbers[::2], strict=False))  # so that no byte is in two objects
    for (start, number), (end, _) in pairwise([*places, (len(data), 0)]):
        if first + start < len(data):
            yield number, data[first + start : first + end]
