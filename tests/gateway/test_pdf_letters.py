"""PDFs whose letters other readers find and PDFium alone does not: odd fonts, empty passwords, text beside the page."""

import io
from hashlib import sha256
from math import cos, sin
from typing import Final, cast

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DictionaryObject, PdfObject, TextStringObject

from tests.gateway.documents import of_objects, pdf
from tests.gateway.extracting import noted, reason, text_of
from tests.gateway.test_ocr import OCR, WITH_TESSERACT, scan

PADDING: Final = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a").decode("latin-1")
"""What the specification fills a password with: alone it is the empty one."""
HELVETICA: Final = b"/Subtype/Type1/BaseFont/Helvetica"


def stream(content: bytes, *, entries: bytes = b"") -> bytes:
    return b"<<%b/Length %d>>stream\n%b\nendstream" % (entries, len(content), content)


def written_in(font: bytes, shown: bytes, *more: bytes) -> bytes:
    """A PDF of one page that shows a string in a font, which is object 5; ``more`` are the objects after it."""
    return of_objects(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
            stream(b"BT /F 12 Tf 10 50 Td %b Tj ET" % shown),
            b"<</Type/Font%b>>" % font,
            *more,
        ]
    )


def written_by_numbers(
    shown: bytes, *, mapped: bytes = b"", name: bytes = b"Made", encoding: bytes = b"Identity-H", more: bytes = b""
) -> bytes:
    """A PDF that shows numbers of glyphs; ``mapped`` are lines of the font's map to Unicode."""
    font = b"/Subtype/Type0/BaseFont/%b/Encoding/%b/DescendantFonts[6 0 R]" % (name, encoding)
    described = (
        b"<</Type/Font/Subtype/CIDFontType2/BaseFont/%b/DW 800/CIDToGIDMap/Identity%b"
        b"/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>" % (name, more)
    )
    if not mapped:
        return written_in(font, shown, described)
    return written_in(font + b"/ToUnicode 7 0 R", shown, described, stream(mapped))


async def test_a_type_3_font_is_read_by_the_names_of_its_letters() -> None:
    drawn = b"<</T 6 0 R/e 6 0 R/a 6 0 R/space 6 0 R/five 6 0 R>>"
    font = (
        b"/Subtype/Type3/FontBBox[0 0 50 50]/FontMatrix[0.02 0 0 0.02 0 0]/FirstChar 1/LastChar 5"
        b"/Widths[30 30 30 15 30]/Encoding<</Type/Encoding/Differences[1/T/e/a/space/five]>>/CharProcs " + drawn
    )
    raw = written_in(font, b"<0102030405>", stream(b"30 0 0 0 30 30 d1 0 0 20 20 re f"))
    assert await text_of(raw, "a.pdf") == "[page 1]\n\nTea 5\n\n\f"


async def test_a_map_with_a_wrong_count_of_its_lines_is_read_whole() -> None:
    lines = b"".join(b"<%04x> <%04x>\n" % (ord(letter) - 4, ord(letter)) for letter in " Teafivt")
    shown = b"".join(b"%04x" % (ord(letter) - 4) for letter in "Tea at five")
    raw = written_by_numbers(b"<%b>" % shown, mapped=b"1 beginbfchar\n%bendbfchar" % lines)
    assert await text_of(raw, "a.pdf") == "[page 1]\n\nTea at five\n\n\f"


async def test_ligatures_are_read_by_their_names() -> None:
    font = (
        b"/Subtype/Type1/BaseFont/Made/Encoding<</Type/Encoding/Differences"
        b"[1/o/f_f_i/c/e/T_h/i/s]>>/FirstChar 1/LastChar 7/Widths[500 800 500 500 800 300 500]"
    )
    raw = written_in(font, b"<05060701020304>", b"null")
    assert "Thisoffice" in await text_of(raw, "a.pdf")


async def test_numbers_of_glyphs_of_a_windows_font_are_read_as_its_letters() -> None:
    shown = b"".join(b"%04x" % (ord(letter) - 29) for letter in "Tea at f") + b"%04x%04x" % (129, ord("r") - 29)
    raw = written_by_numbers(b"<%b>" % shown, name=b"ABCDEF+Arial")
    assert await text_of(raw, "a.pdf") == "[page 1]\n\nTea at f\u00fcr\n\n\f"


@pytest.mark.parametrize(
    ("name", "numbers", "text"),
    [
        pytest.param(b"Calibri", [100, 286, 258, 3, 258, 410, 3, 1009, 856, 1004], "Tea at 5.0", id="Calibri"),
        pytest.param(b"ABCDEF+Calibri,Bold", [80, 349, 374, 263], "Öinä", id="Calibri with accents"),
        pytest.param(b"Cambria-Bold", [23, 135, 131, 3, 883, 484, 890], "Tea 1.8", id="Cambria"),
        pytest.param(b"Times#20New#20Roman", [3, 55, 72, 68], " Tea", id="a name with spaces"),
        pytest.param(b"ArialMT", [594, 602, 617], "\u0428\u0430\u043f", id="Cyrillic"),
        pytest.param(b"ArialMT", [29, 3, 254, 3, 226], ": č Š", id="Arial with carons"),
        pytest.param(b"Verdana", [29, 3, 227, 3, 257], ": ł đ", id="Verdana with strokes"),
        pytest.param(b"ArialMT", [20, 20, 179, 55, 180], "11\u201cT\u201d", id="quotation marks"),
    ],
)
async def test_numbers_of_glyphs_are_read_in_the_order_of(name: bytes, numbers: list[int], text: str) -> None:
    shown = b"".join(b"%04x" % number for number in numbers)
    assert await text_of(written_by_numbers(b"<%b>" % shown, name=name), "a.pdf") == f"[page 1]\n\n{text}\n\n\f"


@pytest.mark.parametrize(
    ("name", "glyphs"),
    [
        pytest.param(b"Cambria", b"/g23/g135/g131/g3/g887", id="decimal"),
        pytest.param(b"Arial-BoldMT", b"/g0037/g0048/g0044/g0003/g0018", id="hexadecimal"),
    ],
)
async def test_glyphs_that_are_named_by_their_numbers_are_read(name: bytes, glyphs: bytes) -> None:
    font = (
        b"/Subtype/Type1/BaseFont/ABCDEF+%b/Encoding<</Type/Encoding/Differences[2%b]>>"
        b"/FirstChar 2/LastChar 6/Widths[500 500 500 300 500]" % (name, glyphs)
    )
    assert await text_of(written_in(font, b"<0203040506>"), "a.pdf") == "[page 1]\n\nTea 5\n\n\f"


@pytest.mark.parametrize(
    ("glyphs", "text"),
    [
        pytest.param(b"/G4B/GE1/G76/GE1/G20/G9D", "Kává ť", id="hexadecimal"),
        pytest.param(b"/C75/C225/C118/C97/C32/C157", "Káva ť", id="decimal"),
        pytest.param(b"/G4B/GE9/G76/GE1/G20/GE8", "Kévá è", id="a code that Western and Czech read differently"),
    ],
)
async def test_glyphs_that_are_named_by_their_codes_are_read(glyphs: bytes, text: str) -> None:
    assert await text_of(named(glyphs), "a.pdf") == f"[page 1]\n\n{text}\n\n\f"


@pytest.mark.parametrize("glyphs", [b"/G41/G42/G43/G44/G20/G45", b"/C1/C2/C3/C100/C32/C101"])
async def test_names_that_may_be_numbers_of_glyphs_are_no_letters(glyphs: bytes) -> None:
    _, notes = await noted(named(glyphs), "a.pdf")
    assert notes == ["left out or replaced: pages whose letters have no Unicode: 1"]


def named(glyphs: bytes) -> bytes:
    """A PDF that shows six glyphs with such names, of which the last but one is a space."""
    font = (
        b"/Subtype/Type1/BaseFont/ABCDEF+AdvT905/Encoding<</Type/Encoding/Differences[1%b]>>"
        b"/FirstChar 1/LastChar 6/Widths[500 500 500 500 300 500]" % glyphs
    )
    return written_in(font, b"<010203040506>")


WITHOUT_LETTERS: Final = written_by_numbers(b"<004100420043004400450046>")


async def test_a_page_whose_letters_have_no_unicode_is_named_in_the_status() -> None:
    _, notes = await noted(WITHOUT_LETTERS, "a.pdf")
    assert notes == ["left out or replaced: pages whose letters have no Unicode: 1"]


@WITH_TESSERACT
async def test_a_page_whose_letters_have_no_unicode_is_read_as_a_picture() -> None:
    _, picture = scan("The locker code is 482.")
    writer = PdfWriter(clone_from=io.BytesIO(WITHOUT_LETTERS))
    writer.pages[0].merge_page(PdfReader(io.BytesIO(picture)).pages[0], over=True)
    raw = io.BytesIO()
    writer.write(raw)
    text, _ = await noted(raw.getvalue(), "a.pdf", limits=OCR)
    assert "The locker code is 482." in text


def encrypted(algorithm: str, *, owner: str) -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(pdf("Tea at five")))
    writer.encrypt("secret", owner_password=owner, algorithm=algorithm)
    raw = io.BytesIO()
    writer.write(raw)
    return raw.getvalue()


@pytest.mark.parametrize("algorithm", ["RC4-40", "RC4-128", "AES-128"])
async def test_a_file_opens_by_the_empty_password_of_its_owner(algorithm: str) -> None:
    assert await text_of(encrypted(algorithm, owner=PADDING), "a.pdf") == "[page 1]\n\nTea at five\n\n\f"


async def test_a_file_of_256_bits_opens_by_the_empty_password_of_its_owner() -> None:
    raw = encrypted("AES-256-R5", owner="other")
    entries = cast("DictionaryObject", PdfReader(io.BytesIO(raw)).trailer["/Encrypt"])
    user, owner, user_key, owner_key = (bytes_of(entries[name]) for name in ("/U", "/O", "/UE", "/OE"))
    no_vector = modes.CBC(bytes(16))
    key = Cipher(algorithms.AES(sha256(b"secret" + user[40:48]).digest()), no_vector).decryptor().update(user_key)
    salts = bytes(range(16))
    ours = sha256(salts[:8] + user).digest() + salts
    ours_key = Cipher(algorithms.AES(sha256(salts[8:] + user).digest()), no_vector).encryptor().update(key)
    for before, after in ((owner, ours), (owner_key, ours_key)):
        assert raw.count(before.hex().encode()) == 1
        raw = raw.replace(before.hex().encode(), after.hex().encode())
    assert await text_of(raw, "a.pdf") == "[page 1]\n\nTea at five\n\n\f"


def bytes_of(entry: PdfObject) -> bytes:
    return entry.original_bytes if isinstance(entry, TextStringObject) else cast("bytes", entry)


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
async def test_a_file_with_two_passwords_stays_closed(algorithm: str) -> None:
    assert await reason(encrypted(algorithm, owner="other"), "a.pdf") == "the file is encrypted"


async def test_a_file_that_opens_by_an_empty_password_may_be_damaged_all_the_same() -> None:
    raw = encrypted("RC4-128", owner=PADDING)
    assert await reason(raw.replace(b"/Pages 2 0 R", b"/Pages 6 0 R"), "a.pdf") == "the file is damaged (PDF)"


async def test_text_that_stands_in_an_annotation_only_is_read() -> None:
    shown = stream(
        b"BT /F 12 Tf 10 10 Td (Tea at five) Tj ET",
        entries=b"/Type/XObject/Subtype/Form/BBox[0 0 200 40]/Resources<</Font<</F 5 0 R>>>>",
    )
    raw = of_objects(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Annots[4 0 R]>>",
            b"<</Type/Annot/Subtype/FreeText/Rect[10 10 210 50]/AP<</N 6 0 R>>/F 4/DA(/F 12 Tf)>>",
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            shown,
        ]
    )
    assert await text_of(raw, "a.pdf") == "[page 1]\n\nTea at five\n\n\f"


def letter_by_letter(word: str, *, size: int, left: float, bottom: float) -> bytes:
    places = (b"1 0 0 1 %.1f %.1f Tm (%c) Tj" % (left + 8 * at, bottom, ord(one)) for at, one in enumerate(word))
    return b"BT /F %d Tf %b ET " % (size, b" ".join(places))


async def test_letters_that_are_drawn_again_as_an_outline_are_read_once() -> None:
    drawn = letter_by_letter("guest", size=12, left=10, bottom=50)
    outline = letter_by_letter("guest", size=15, left=9, bottom=49)
    raw = written_in(HELVETICA, b"() Tj ET " + drawn + outline + b"BT ()")
    assert await text_of(raw, "a.pdf") == "[page 1]\n\nguest\n\n\f"


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (b"2 Tc (Nort) Tj 30.67 0 Td (h of) Tj ()", "North of"),
        (b"(PART) Tj 32 0 Td 3 Tc (SS) Tj 19 0 Td 0 Tc (OLD) Tj ()", "PARTS SOLD"),
        (b"(YOUR) Tj .998 .06 -.06 .998 46 50 Tm /F 11 Tf (One) Tj ()", "YOUR One"),
        (b"(I am) Tj 30 0 Td (a) Tj 10 0 Td (b)", "I am a b"),
        (b"(a ......... b)", "a ......... b"),
        (b"(well) Tj 40 0 Td (all)", "well all"),
    ],
    ids=["letters apart", "one wide gap", "another size and slant", "single letters", "dots", "twice the same letter"],
)
async def test_words_part_where_a_gap_is_wider_than_those_beside_it(shown: bytes, text: str) -> None:
    assert await text_of(written_in(HELVETICA, shown), "a.pdf") == f"[page 1]\n\n{text}\n\n\f"


@pytest.mark.parametrize("slant", [0.0, 0.32, 0.78, 1.3, 1.6, -1.0])
async def test_words_of_a_slanted_line_are_whole(slant: float) -> None:
    across, up = cos(slant), sin(slant)
    drawn = b" ".join(
        b"BT /F 12 Tf %.4f %.4f %.4f %.4f %.2f %.2f Tm (%c) Tj ET"
        % (across, -up, up, across, 100 + at * across, 100 - at * up, letter)
        for at, letter in zip((0, 6.67, 13.34, 22.8, 29.5), b"15011", strict=True)
    )
    raw = written_in(HELVETICA, b"() Tj ET " + drawn + b" BT ()")
    assert await text_of(raw, "a.pdf") == "[page 1]\n\n150 11\n\n\f"


async def test_letters_that_stand_far_below_one_another_are_no_word() -> None:
    mapped, more = b"1 beginbfrange <0001> <0003> <0041> endbfrange", b"/DW2[880 -1000]"
    raw = written_by_numbers(b"-40 Tc 0 140 Td <000100020003>", mapped=mapped, encoding=b"Identity-V", more=more)
    assert await text_of(raw, "a.pdf") == "[page 1]\n\nA\nB\nC\n\n\f"


@pytest.mark.parametrize(
    "drawn",
    [
        b"80 0 Td [<0003> 1600 <000d> 1600 <0005> 1600 <0020> 1600 <000a> 1600 <0006> 1600 <000e>] TJ <>",
        b"<000e0006000a00200005000d0003>",
    ],
    ids=["as it is read", "from left to right"],
)
async def test_hebrew_is_read_from_right_to_left_in_whatever_order_it_is_drawn(drawn: bytes) -> None:
    """The letters stand at the same places of the page in both orders."""
    mapped = b"1 beginbfchar <0020> <0020> endbfchar 1 beginbfrange <0001> <001b> <05d0> endbfrange"
    text = await text_of(written_by_numbers(drawn, mapped=mapped), "a.pdf")
    assert text == "[page 1]\n\n\u05d2\u05dc\u05d4 \u05d9\u05d5\u05dd\n\n\f"


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        (b"(AB) Tj /F 6 Tf 2 9 Td (C) Tj /F 12 Tf 14 -9 Td (D)", "\u0e02\u0e49\u0e19\u0e07"),
        (b"(AB) Tj 0 2 Td (C) Tj 16 -2 Td (D)", "\u0e02\u0e49\u0e19\u0e07"),
        (b"(AB) Tj /F 6 Tf 8 9 Td (CC) Tj /F 12 Tf 8 -9 Td (D)", "\u0e02\u0e19\u0e49\u0e49\u0e07"),
        (b"(AB) Tj /F 6 Tf 2 9 Td (C) Tj /F 12 Tf 44 -9 Td (D)", "\u0e02\u0e49\u0e19\n\u0e07"),
    ],
    ids=["another size", "the same size", "two marks", "before another word"],
)
async def test_a_mark_that_is_drawn_late_stands_behind_its_letter(drawn: bytes, text: str) -> None:
    mapped = stream(b"4 beginbfchar <41> <0e02> <42> <0e19> <43> <0e49> <44> <0e07> endbfchar")
    assert (
        await text_of(written_in(HELVETICA + b"/ToUnicode 6 0 R", drawn, mapped), "a.pdf")
        == f"[page 1]\n\n{text}\n\n\f"
    )


async def test_digits_of_arabic_keep_their_order() -> None:
    raw = written_by_numbers(b"<0002000000020004>", mapped=b"1 beginbfrange <0000> <0009> <0660> endbfrange")
    assert await text_of(raw, "a.pdf") == "[page 1]\n\n\u0662\u0660\u0662\u0664\n\n\f"
