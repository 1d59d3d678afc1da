"""Writes a PDF again in a form that PDFium reads: without encryption, or with letters for the codes of its fonts.

PDFium opens no file by an empty owner's password, drops the rest of a map to Unicode at its first fault, and has no
letters for the codes of Type 3 fonts and for the numbers of glyphs.
"""

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from itertools import islice
from typing import Final

from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, StreamObject

from gateway.extract.source import Unreadable

_MOST_BYTES: Final = 16 << 20
"""A larger file keeps the letters that PDFium finds: to write it again takes minutes."""
_MOST_LINES: Final = 1 << 16
_BLOCK = re.compile(rb"beginbf(char|range)(.*?)endbf", re.DOTALL)
_HEX: Final = rb"<[\dA-Fa-f]+>"
_LINES: Final = {
    b"char": re.compile(_HEX + rb"\s*" + _HEX),
    b"range": re.compile(_HEX + rb"\s*" + _HEX + rb"\s*(?:" + _HEX + rb"|\[[^\]]*\])"),
}
_LIGATURE = re.compile("/[A-Za-z](?:_[A-Za-z])+")
_IN_ORDER = re.compile(
    r"(?:Arial(?:Black)?|CenturyGothic|CourierNew|Georgia|Impact|SegoeUI|Tahoma|TimesNewRoman|TrebuchetMS|Verdana)(?:PS)?(?:MT)?\b"
)
"""Fonts of Windows whose first glyphs stand in the order of the Macintosh's encoding."""
_SUBSET = re.compile(r"/(?:[A-Z]{6}\+)?")
_KNOWN_GLYPHS: Final = range(3, 226)
_LATER_GLYPHS: Final = "ŁłŠšŽž¦ÐðÝýÞþ\u2212\u00d7¹²³½¼¾₣ĞğİŞşĆćČčđ"
"""The last of the 258 glyphs that the table ``post`` of TrueType names, in its order."""
_SPACE: Final = 3
_NO_SPACE: Final = 172
_NO_APPLE: Final = 209
"""Where Arial and Times New Roman leave out what the Macintosh has: a space that does not break, and the apple."""
_WITH_CYRILLIC = re.compile(r"(?:Arial|TimesNewRoman)(?:PS)?(?:MT)?\b")
_CYRILLIC: Final = range(570, 634)
_RUNS: Final = {
    "Calibri": (
        {3: " AÁ", 17: "BC", 24: "D", 28: "EÉ", 38: "FG", 44: "H", 47: "IÍ", 58: "J", 60: "K", 62: "L", 68: "MN"}
        | {75: "OÓ", 87: "P", 89: "QR", 94: "S", 100: "T", 104: "UÚ", 115: "VW", 121: "XY", 127: "Z", 258: "aá"}
        | {271: "bcć", 282: "d", 286: "eé", 296: "f", 336: "g", 346: "h", 349: "ií", 361: "j", 364: "k", 367: "l"}
        | {373: "mn", 381: "oó", 393: "p", 395: "qr", 400: "s", 410: "t", 437: "uú", 448: "vw", 454: "xy", 460: "z"}
        | {9: "Ä", 55: "İ", 80: "Ö", 109: "Ü", 263: "ä", 358: "ı", 386: "ö", 442: "ü", 842: "!", 845: "?"}
        | {853: ",;:.…\u2018\u2019", 862: "“”", 872: "«»", 876: "/", 882: "-", 894: "()", 918: "'\"&", 936: "$"}
        | {951: "#", 1004: "0123456789", 1081: "%"}
    ),
    "Cambria": (
        {3: " ABCDEFGHIJKLMNOPQRSTUVWXYZ", 131: "abcdefghijklmnopqrstuvwxyz", 428: "&", 481: ",;:.", 486: "-"}
        | {491: "?", 495: "\u2019", 498: "“”", 512: "/", 514: "\u2013", 523: "()", 820: "_'", 882: "0123456789"}
        | {938: "+", 945: "="}
    ),
}
"""The glyphs of the fonts of Word, as maps to Unicode in public files have them: the first number of each run."""
_NUMBER = re.compile(r"/g(?:([1-9]\d{0,3})|(0[\da-f]{3}))")
"""A glyph's name by its number: a decimal one, or four hexadecimal digits."""
_HEX_CODE = re.compile(r"/[CG]([\dA-Fa-f]{2})")
_CODE = re.compile(r"/[Cc](\d{2,3})")
"""A glyph's name by its code in a page of Windows, as drivers of printers and 3B2 (journals) write it."""
_CODES: Final = range(32, 256)
_CODE_PAGES: Final = ("cp1252", "cp1250")
_LEAST_GLYPHS: Final = 258
"""A font of fewer was cut to what the file needs, and its glyphs have other numbers."""


def unlocked(raw: bytes) -> bytes | None:
    """Return the file without encryption, if an empty password of its owner or user opens it.

    Raises Unreadable where the password is right and the rest is damaged.
    """
    try:
        reader = PdfReader(BytesIO(raw))
        if not reader.decrypt(""):
            return None
    except Exception:  # noqa: BLE001 - a parser may raise anything; the file stays encrypted
        return None
    try:
        return _written(PdfWriter(clone_from=reader))
    except Exception:  # noqa: BLE001 - as above
        raise Unreadable("the file is damaged (PDF)") from None


def with_letters(raw: bytes) -> bytes | None:
    """Return the file with more letters for the codes of its fonts; None where none are found."""
    if len(raw) > _MOST_BYTES:
        return None
    try:
        writer = PdfWriter(clone_from=BytesIO(raw))
        seen = set[int]()
        fonts = {id(font): font for page in writer.pages for font in _fonts(page, seen)}.values()
        mended = 0
        for font in fonts:
            with suppress(LookupError, TypeError, ValueError, struct.error):  # an odd font is no fault of the others
                mended += _mended(font, writer)
        return _written(writer) if mended else None
    except Exception:  # noqa: BLE001 - a parser may raise anything; PDFium has read the file as it is
        return None


def _written(writer: PdfWriter) -> bytes:
    written = BytesIO()
    writer.write(written)
    return written.getvalue()


def _fonts(holder: DictionaryObject, seen: set[int]) -> Iterator[DictionaryObject]:
    """Yield the fonts of a page or a form, and of the forms that it draws."""
    seen.add(id(holder))
    resources = _dictionary(holder, "/Resources")
    yield from (_dictionary(fonts, name) for fonts in [_dictionary(resources, "/Font")] for name in fonts)
    drawn = _dictionary(resources, "/XObject")
    for form in (_dictionary(drawn, name) for name in drawn):
        if id(form) not in seen:
            yield from _fonts(form, seen)


def _dictionary(holder: DictionaryObject, name: str) -> DictionaryObject:
    found = holder.get(name)
    value = None if found is None else found.get_object()
    return value if isinstance(value, DictionaryObject) else DictionaryObject()


def _list(holder: DictionaryObject, name: str) -> ArrayObject:
    found = holder.get(name)
    value = None if found is None else found.get_object()
    return value if isinstance(value, ArrayObject) else ArrayObject()


def _mended(font: DictionaryObject, writer: PdfWriter) -> bool:
    """Give a font letters for its codes; return whether it has any now."""
    is_named = "/Differences" in _dictionary(font, "/Encoding")
    if font.get("/Subtype") == "/Type3" and is_named and "/ToUnicode" not in font:
        # PDFium looks the names of letters up in fonts of Type 1 only, whose widths are thousandths
        scale = 1000 * abs(float(_list(font, "/FontMatrix")[0]))
        widths = [float(width.get_object()) * scale for width in _list(font, "/Widths")]
        font[NameObject("/Widths")] = ArrayObject(map(FloatObject, widths))
        font |= {NameObject("/Subtype"): NameObject("/Type1"), NameObject("/BaseFont"): NameObject("/Letters")}
        return True
    told = _dictionary(font, "/ToUnicode")
    blocks = _BLOCK.finditer(told.get_data()) if isinstance(told, StreamObject) else ()
    own = ((block[1], line[0]) for block in blocks for line in _LINES[block[1]].finditer(block[2]))
    lines = [*_named(font), *islice(own, _MOST_LINES)] or [*_numbered(font)]
    if lines:
        # A fault in one block is not one of the next
        stream = StreamObject()
        stream.indirect_reference = None
        stream.set_data(b"".join(b"1 beginbf%s\n%s\nendbf%s\n" % (kind, line, kind) for kind, line in lines))
        font[NameObject("/ToUnicode")] = stream.clone(writer).indirect_reference or stream
    return bool(lines)


def _named(font: DictionaryObject) -> Iterator[tuple[bytes, bytes]]:
    """Yield lines for glyphs named by letters (``f_f_i``), numbers (``g3``, which is a space) or codes (``G4B``)."""
    differences = _list(_dictionary(font, "/Encoding"), "/Differences")
    code, in_order, by_code = 0, _in_order(font), _by_code(differences)
    for one in differences:
        if not isinstance(one, NameObject):
            code = int(one)
            continue
        number = _NUMBER.fullmatch(one)
        letters = one[1:].replace("_", "") if _LIGATURE.fullmatch(one) else by_code.get(one, "")
        if number is not None:
            glyph = int(number[1]) if number[1] else int(number[2], 16)
            letters = " " if glyph == _SPACE else in_order.get(glyph, "")
        if letters:
            yield b"char", b"<%02x> <%s>" % (code, letters.encode("utf-16-be").hex().encode())
        code += 1


def _by_code(differences: ArrayObject) -> dict[str, str]:
    """Return the letters of glyphs that are all named by codes, as ``G4B`` or ``C75``; none of other fonts.

    Two decimal digits alone may as well be numbers of glyphs. The code page is the first that has a letter for each.
    """
    named = [one for one in differences if isinstance(one, NameObject) and one not in ("/.notdef", "/space")]
    hexadecimal = [int(found[1], 16) for name in named if (found := _HEX_CODE.fullmatch(name))]
    decimal = [int(found[1]) for name in named if (found := _CODE.fullmatch(name))]
    is_hexadecimal = len(hexadecimal) == len(named) and not all(name[2:].isdecimal() for name in named)
    codes = hexadecimal if is_hexadecimal else decimal if max(decimal, default=0) > 99 else []
    if len(codes) < len(named) or not all(code in _CODES for code in codes):
        return {}
    for page in _CODE_PAGES:
        with suppress(UnicodeDecodeError):
            return dict(zip(named, bytes(codes).decode(page), strict=True))
    return {}


def _in_order(font: DictionaryObject) -> dict[int, str]:
    """Return the letters of a font of Windows by the numbers of its glyphs; none of other fonts."""
    name = _SUBSET.sub("", str(font.get("/BaseFont")), count=1).replace(" ", "")
    if (runs := _RUNS.get(re.split(r"[,-]", name, maxsplit=1)[0])) is not None:
        return {first + place: letter for first, run in runs.items() for place, letter in enumerate(run)}
    if not _IN_ORDER.match(name):
        return {}
    letters = {number: bytes([number + (29 if number < 98 else 30)]).decode("mac-roman") for number in _KNOWN_GLYPHS}
    letters |= dict(enumerate(_LATER_GLYPHS, start=_KNOWN_GLYPHS.stop))
    if _WITH_CYRILLIC.match(name):
        known = range(_NO_SPACE, _LEAST_GLYPHS - 2)
        shifted = {number: letters[number + 1 + (number >= _NO_APPLE)] for number in known}
        letters |= shifted | {number: chr(number - _CYRILLIC[0] + 0x410) for number in _CYRILLIC}
    return letters


def _numbered(font: DictionaryObject) -> Iterator[tuple[bytes, bytes]]:
    """Yield lines for codes that are the numbers of glyphs in a font whose glyphs stand in a known order."""
    described = _list(font, "/DescendantFonts")
    letters = _in_order(font)
    if font.get("/Encoding") != "/Identity-H" or not described or not letters:
        return
    if isinstance(_dictionary(described[0].get_object(), "/CIDToGIDMap"), StreamObject):
        return  # the codes are no numbers of glyphs
    file = _dictionary(_dictionary(described[0].get_object(), "/FontDescriptor"), "/FontFile2")
    if isinstance(file, StreamObject):
        raw = file.get_data()
        tables = (struct.unpack_from(">4s4xI", raw, 12 + 16 * number) for number in range(raw[5]))
        count = next((struct.unpack_from(">H", raw, at + 4)[0] for name, at in tables if name == b"maxp"), 0)
        if count < _LEAST_GLYPHS:
            return
    for number, letter in letters.items():
        yield b"char", b"<%04x> <%04x>" % (number, ord(letter))
