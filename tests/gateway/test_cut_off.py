"""PDFs without their end: the pages that are there are read, and the fault is named."""

import zlib
from typing import Final

import pytest

from tests.gateway.documents import of_objects, pdf
from tests.gateway.extracting import noted, reason

PAGES: Final = tuple(f"Room {number} holds the box {number * 7}." for number in range(1, 31))
NOTE: Final = "left out or replaced: what is missing from the file, which is cut off or damaged"


@pytest.mark.parametrize("share", [30, 50, 70, 85, 95, 99])
async def test_pages_before_a_cut_are_read_in_their_order(share: int) -> None:
    raw = pdf(*PAGES)
    text, notes = await noted(raw[: len(raw) * share // 100], "a.pdf")
    shown = [page.strip().partition("\n\n")[2] for page in text.rstrip("\f").split("\f")]
    assert notes == [NOTE]
    assert shown == list(PAGES[: len(shown)])
    assert len(shown) >= len(PAGES) * (share - 20) // 100


async def test_pages_in_a_stream_of_objects_are_read_as_far_as_it_is_there() -> None:
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    page = b"<</Type/Page/Parent 9 0 R/Contents %d 0 R/Resources<</Font<</F 12 0 R>>>>>>"
    inside = {12: font, 13: page % 2, 14: page % 3}
    content, head = b"".join(inside.values()), b""
    for number, start in zip(inside, (0, len(font), len(font) + len(page % 2)), strict=True):
        head += b"%d %d " % (number, start)
    packed = zlib.compress(head + content)
    stream = b"<</Type/ObjStm/N 3/First %d/Filter/FlateDecode/Length %d>>stream\n" % (len(head), len(packed))
    drawn = (
        b"<</Length 99>>stream\nBT /F 12 Tf 10 100 Td (%s) Tj ET\nendstream" % line for line in (b"Tea", b"Coffee")
    )
    objects = zip((2, 3, 4), (*drawn, stream + packed + b"\nendstream"), strict=True)
    raw = b"%PDF-1.5\n" + b"".join(b"%d 0 obj\n%s\nendobj\n" % each for each in objects)
    assert await noted(raw, "a.pdf") == ("[page 1]\n\nTea\n\n\f[page 2]\n\nCoffee\n\n\f", [NOTE])


async def test_a_cut_before_the_first_page_is_refused() -> None:
    assert await reason(pdf(*PAGES)[:60], "a.pdf") == "the file is damaged (PDF)"


async def test_pages_that_are_named_but_not_there_are_told() -> None:
    page = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
    tree = b"<</Type/Pages/Count 3/MediaBox[0 0 200 200]/Kids[3 0 R 7 0 R 8 0 R]>>"
    drawn = b"<</Length 37>>stream\nBT /F 12 Tf 10 100 Td (Tea) Tj ET    \nendstream"
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    text, notes = await noted(of_objects([b"<</Type/Catalog/Pages 2 0 R>>", tree, page, drawn, font]), "a.pdf")
    assert text == "[page 1]\n\nTea\n\n\f\f\f"
    assert notes == ["left out or replaced: pages that cannot be read: 2, 3"]
