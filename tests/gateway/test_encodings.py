"""Texts in every encoding are read as browsers read them, and a wrong byte costs one letter."""

import base64

import pytest

from tests.gateway.documents import mail
from tests.gateway.extracting import noted, text_of

CHINESE = "\u6731\u9555\u57fa\u51fa\u5e2d\u4f1a\u8bae\u3002"
"""Its second letter is in GBK and not in GB 2312."""
JAPANESE = (
    "\u2460\u3053\u3093\u306b\u3061\u306f\u3001\u4e16\u754c\u3002\u30ab\u30bf\u30ab\u30ca\u3082\u8aad\u3081\u308b\u3002"
)
RUSSIAN = (
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440. \u042d\u0442\u043e "
    "\u043f\u0440\u043e\u0441\u0442\u043e\u0439 \u0442\u0435\u043a\u0441\u0442 \u043d\u0430 "
    "\u0440\u0443\u0441\u0441\u043a\u043e\u043c. "
)
FRENCH = "L\u2019\u00e9t\u00e9 d\u00e9j\u00e0 pass\u00e9, on a vu \u00e0 No\u00ebl des \u0153ufs \u00e0 5 \u20ac. "


@pytest.mark.parametrize(
    ("raw", "name", "media_type", "text"),
    [
        (f'<meta charset="gb2312"><p>{CHINESE}'.encode("gbk"), "a.html", "", CHINESE),
        (f'<meta charset="iso-8859-1"><p>{FRENCH}'.encode("cp1252"), "a.html", "", FRENCH.strip()),
        (f'<meta charset="shift_jis"><p>{JAPANESE}'.encode("cp932"), "a.html", "", JAPANESE),
        (f'<meta charset="gb2312"><p>{FRENCH}'.encode("utf-8-sig"), "a.html", "", FRENCH.strip()),
        (
            f'<meta charset="utf-8"><p>{RUSSIAN}'.encode("koi8-r"),
            "a.html",
            "text/html; charset=koi8-r",
            RUSSIAN.strip(),
        ),
        (f'<meta charset="utf-16"><p>{FRENCH}'.encode(), "a.html", "", FRENCH.strip()),
        (f'<meta charset="unicode"><p>{FRENCH}'.encode(), "a.html", "", FRENCH.strip()),
        (f'<meta charset="utf-8"><p>{FRENCH * 9}'.encode("cp1252"), "a.html", "", (FRENCH * 9).strip()),
        (f"<p>{RUSSIAN * 9}".encode("cp1251"), "a.html", "", (RUSSIAN * 9).strip()),
        ((RUSSIAN * 9).encode("cp1251"), "a.txt", "", RUSSIAN * 9),
        ((JAPANESE * 9).encode("euc_jis_2004"), "a.txt", "text/plain; charset=euc-jp", JAPANESE * 9),
        ((FRENCH * 9).encode("cp1252"), "a.md", "", FRENCH * 9),
        (b"caf\xe9 " * 10, "a.txt", "", "caf\u00e9 " * 10),
        ((FRENCH * 9).encode("utf-16-le"), "a.txt", "", FRENCH * 9),
        ((FRENCH * 9).encode("utf-16-be"), "a.txt", "", FRENCH * 9),
        (FRENCH.encode("utf-32"), "a.txt", "", FRENCH),
        (
            b'{"tea": "\\u8336 at \\"five\\"\\n\\ud83c\\udf75"}',
            "a.json",
            "",
            '{"tea": "\u8336 at \\"five\\"\\n\U0001f375"}',
        ),
    ],
    ids=[
        *("gb2312 is gbk", "iso-8859-1 is windows-1252", "Shift_JIS", "the mark wins", "the header wins"),
        *(
            "UTF-16 in ASCII",
            "Unicode in ASCII",
            "a false UTF-8",
            "no charset",
            "windows-1251",
            "EUC-JP",
            "windows-1252",
            "one letter",
        ),
        *("UTF-16-LE", "UTF-16-BE", "UTF-32", "JSON's escapes"),
    ],
)
async def test_a_text_is_read_in_its_encoding(raw: bytes, name: str, media_type: str, text: str) -> None:
    assert await text_of(raw, name, media_type=media_type) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Καλημέρα σε όλους", "iso8859_7"),
        ("Η τιμή είναι 15 ευρώ", "cp1253"),
        ("Имя;Город\nИван;Москва", "koi8_r"),
        ("Цена составляет 15 рублей", "cp866"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy", "iso8859_2"),
        ("Fiyatı on beş lira, İstanbul içi ücretsiz", "cp1254"),
        ("שלום לכולם", "cp1255"),
        ("السعر خمسة عشر دينارا", "iso8859_6"),
        ("ประชุมวันอังคาร", "cp874"),
        ("名前,都市\n太郎,東京", "cp932"),
        ("会議は火曜日の三時です", "euc_jp"),
        ("会議は火曜日の三時です", "iso2022_jp"),
        ("价格是十五元", "gb18030"),
        ("早安世界", "big5"),
        ("안녕하세요 세계", "cp949"),
        ("Le prix est élevé à Orléans", "cp1252"),
        ("A reunião será na terça às três", "cp1252"),
        ("Année;Société\n2025;Hôtel Générale", "mac_roman"),
        ("Die Prüfung läuft über zwölf Tage", "cp850"),
        ("Größe und Maße der Tür", "mac_roman"),
        ("A well—known “word”, isn’t it… Acme™s", "cp1252"),
    ],
)
async def test_a_short_text_without_a_label_is_read(text: str, encoding: str) -> None:
    assert await text_of(text.encode(encoding), "a.csv") == text


@pytest.mark.parametrize(
    ("raw", "name", "encoding"),
    [
        (("\u00e9t\u00e9 " * 40).encode() + b"\xff" + (" \u00e9t\u00e9" * 40).encode(), "a.txt", "UTF-8"),
        (b"<p>" + ("\u00e9t\u00e9 " * 40).encode() + b"\xff" + (" \u00e9t\u00e9" * 40).encode(), "a.html", "UTF-8"),
        (f'<meta charset="gbk"><p>{CHINESE * 9}'.encode("gbk") + b"\xff" + CHINESE.encode("gbk"), "a.html", "GB18030"),
    ],
    ids=["text", "HTML", "gbk"],
)
async def test_a_wrong_byte_is_replaced_by_itself_and_counted(raw: bytes, name: str, encoding: str) -> None:
    text, notes = await noted(raw, name)
    assert text.count("\ufffd") == 1
    assert text.count("\u00e9t\u00e9") in (0, 80)
    assert notes == [f"left out or replaced: 1 byte that is not {encoding}"]


@pytest.mark.parametrize(
    ("raw", "name", "text"),
    [
        (b'<meta charset="utf-8"><p>Preis: 15 \xe2\x82\xac \xff', "a.html", "Preis: 15 \u20ac \ufffd"),
        (b"Preis: 15 \xe2\x82\xac f\xc3\xbcr \xff", "a.txt", "Preis: 15 \u20ac f\u00fcr \ufffd"),
        ('<meta charset="utf-8"><p>\u00e9t\u00e9'.encode("cp1252"), "a.html", "\u00e9t\u00e9"),
    ],
    ids=["a page that says so", "a text", "another encoding"],
)
async def test_one_wrong_byte_of_a_short_text_spoils_no_other(raw: bytes, name: str, text: str) -> None:
    assert await text_of(raw, name) == text


async def test_a_mail_is_decoded_by_its_own_charset() -> None:
    raw = mail(CHINESE, encoding="base64").replace(b'charset="utf-8"', b'charset="gb2312"')
    body = raw.partition(b"\n\n")[2]
    raw = raw.replace(body, base64.encodebytes(CHINESE.encode("gbk")))
    assert CHINESE in await text_of(raw, "a.eml")
