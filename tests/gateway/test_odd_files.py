"""Files as people have them: a wrong name, hidden parts, stubs of mails, formulas, edges of pages."""

import pytest

from tests.gateway.documents import opened, word
from tests.gateway.extracting import noted, reason, text_of
from tests.gateway.test_binary_sheets import xls

XHTML = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/>{}</head><body>{}</body></html>'
CARD = "BEGIN:VCALENDAR\r\nSUMMARY:The keeper of sta\r\n tion 7 is Ann.\r\nEND:VCALENDAR\r\n"
HEADINGS = "Subject: Tea\nFrom: ann@example.org\nMIME-Version: 1.0\n"
ENCODED = f"{HEADINGS}Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nVGVhIGF0IGZpdmUu\n"


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("inbox", f"From ann@example.org Mon Mar  4 10:00:00 2024\n{ENCODED}"),
        ("mail.txt", ENCODED),
        ("mail", ENCODED.replace("\n", "\r\n")),
    ],
    ids=["a mailbox without an extension", "a mail called a text", "a mail without an extension"],
)
async def test_a_mail_is_one_by_its_headings(name: str, raw: str) -> None:
    assert "Tea at five." in await text_of(raw.encode(), name)


async def test_a_text_with_colons_is_no_mail() -> None:
    text = "Agenda: tea\nPlace: here\n\nMessage-ID: none\n"
    assert await text_of(text.encode(), "a.txt") == text


def alternatives(*parts: tuple[str, str]) -> bytes:
    told = "".join(f"--b\nContent-Type: {kind}\n\n{text}\n" for kind, text in parts)
    return f"{HEADINGS}Content-Type: multipart/alternative; boundary=b\n\n{told}--b--\n".encode()


async def test_a_page_without_a_body_does_not_hide_the_plain_text_beside_it() -> None:
    frames = "<html><frameset><frame src=a></frameset></html>"
    assert "Tea at five." in await text_of(alternatives(("text/plain", "Tea at five."), ("text/html", frames)), "a.eml")


@pytest.mark.parametrize(
    ("plain", "page", "read"),
    [
        (
            "Please open this mail in a browser.",
            "<p>The rent is 500 euros a month.</p>",
            "The rent is 500 euros a month.",
        ),
        ("", "<p>The rent is 500 euros.</p>", "The rent is 500 euros."),
        ("The rent is 500 euros.", "<h1>Hello</h1><p>The rent is 500 euros.</p>", "The rent is 500 euros."),
    ],
    ids=["refers to the page", "is empty", "says it"],
)
async def test_a_page_is_read_where_the_plain_text_of_a_mail_only(plain: str, page: str, read: str) -> None:
    text = await text_of(alternatives(("text/plain", plain), ("text/html", page)), "a.eml")
    assert text.partition("\n\n")[2].strip() == read


async def test_an_appointment_of_a_mail_is_read_with_its_lines_whole() -> None:
    text = await text_of(alternatives(("text/plain", "You are invited."), ("text/calendar", CARD)), "a.eml")
    assert "You are invited." in text
    assert "The keeper of station 7 is Ann." in text


async def test_a_saved_page_is_read_without_its_styles_and_its_pictures_are_counted() -> None:
    parts = ("text/html", "<p>Tea</p>"), ("text/css", "p { color: red }"), ("image/png", "x"), ("image/gif", "y")
    text, notes = await noted(alternatives(*parts).replace(b"alternative", b"related"), "a.mhtml")
    assert text.endswith("Tea")
    assert notes == ["left out or replaced: 2 pictures"]


async def test_a_line_that_a_mail_cuts_within_a_word_is_whole() -> None:
    raw = HEADINGS + "Content-Type: text/plain; format=flowed; DelSp=yes\n\nThe light \nhouse is  \nshut.\n"
    assert "The lighthouse is shut." in await text_of(raw.encode(), "a.eml")


async def test_an_appointment_is_read_with_its_lines_whole() -> None:
    assert "The keeper of station 7 is Ann." in await text_of(CARD.encode(), "a.ics")


@pytest.mark.parametrize(
    ("head", "body", "text"),
    [
        ("<script src='a>b'/>", "<p>One<br/>two</p>", "One\ntwo"),
        ("", "<p>One</p><script/><textarea/><div/><p>two</p>", "One\ntwo"),
        ("<style/>", "<p><a id='x'/>One</p>", "One"),
    ],
)
async def test_an_empty_element_of_xhtml_hides_nothing(head: str, body: str, text: str) -> None:
    assert (await text_of(XHTML.format(head, body).encode(), "a.xhtml")).strip() == text


@pytest.mark.parametrize(
    ("page", "text", "lacking"),
    [
        ('<p style="Display: none">a</p>b', "b", "1 hidden part of the page"),
        (
            "<div hidden><p hidden>a</p></div><p>b<span style='x:y;display:none!important'>c</span></p>",
            "b",
            "2 hidden parts of the page",
        ),
        ('<body style="display:none"><p>b</p><p hidden="until-found">c</p></body>', "b\nc", ""),
        ("<p><ruby>東京<rp>(</rp><rt>とう</rt><rp>)</rp></ruby>に</p>", "東京に", "1 reading above a sign"),
        (
            "<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> of <math><msup><mn>10</mn><mn>6</mn></msup></math>.",
            "1/2 of 10^6.",
            "",
        ),
    ],
    ids=["by style", "hidden in hidden", "a hidden body", "ruby", "MathML"],
)
async def test_a_page_is_read_as_a_browser_shows_it(page: str, text: str, lacking: str) -> None:
    assert await noted(f"<html>{page}".encode(), "a.html") == (
        text,
        [f"left out or replaced: {lacking}"] if lacking else [],
    )


def formula(inside: str) -> str:
    return f'<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math">{inside}</m:oMath>'


def math(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


SQUARE = f"<m:sSup><m:e>{{}}</m:e><m:sup>{math('2')}</m:sup></m:sSup>"
SUM = (
    f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{math("i=1")}</m:sub>'
    f"<m:sup>{math('17')}</m:sup><m:e>{SQUARE.format(math('i'))}</m:e></m:nary>"
)


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (f"<m:rad><m:deg/><m:e>{math('x+9')}</m:e></m:rad>", "√(x+9)"),
        (f"<m:rad><m:deg>{math('3')}</m:deg><m:e>{math('8')}</m:e></m:rad>", "3√8"),
        (SQUARE.format(f"<m:d><m:e>{math('a+b')}</m:e></m:d>"), "(a+b)^2"),
        (f'<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr><m:e>{math("5")}</m:e></m:d>', "[5]"),
        (SUM, "∑_(i=1)^17 i^2"),
        (f"<m:sSubSup><m:e>{math('x')}</m:e><m:sub>{math('1')}</m:sub><m:sup>{math('2')}</m:sup></m:sSubSup>", "x_1^2"),
    ],
    ids=["a root", "a cubic root", "brackets", "square brackets", "a sum", "index and power"],
)
async def test_a_formula_of_a_docx_is_written_in_one_line(inside: str, text: str) -> None:
    assert await text_of(word(f"<w:p>{formula(inside)}</w:p>"), "a.docx") == f"{text}\n"


async def test_readings_above_the_signs_of_a_docx_do_not_part_words() -> None:
    reading, base = "<w:r><w:t>とう</w:t></w:r>", "<w:r><w:t>東</w:t></w:r>"
    ruby = f"<w:ruby><w:rt>{reading}</w:rt><w:rubyBase>{base}</w:rubyBase></w:ruby>"
    text, notes = await noted(word(f"<w:p><w:r>{ruby}</w:r><w:r><w:t>京</w:t></w:r></w:p>"), "a.docx")
    assert (text, notes) == ("東京\n", ["left out or replaced: 1 reading above a sign"])


async def test_headers_and_footers_of_an_odt_follow_its_text() -> None:
    style = 'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
    text = 'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    edges = "".join(
        f"<style:{kind}><text:p>{said}</text:p></style:{kind}>"
        for kind, said in (("header", "Draft"), ("header-first", "Draft"), ("footer", "Page 1"))
    )
    raw = opened("text", "<text:p>Tea.</text:p>", **{"styles.xml": f"<x {style} {text}>{edges}</x>"})
    assert await text_of(raw, "a.odt") == "Tea.\n[header: Draft]\n[footer: Page 1]\n"


@pytest.mark.parametrize(
    ("name", "raw", "text"),
    [
        ("report.xls", b"<table><tr><th>Item</th><th>Price</th></tr><tr><td>Tea</td><td>4.50</td></tr></table>",
         "Item | Price\nTea | 4.50"),
        ("report.xls", "<html><body><p>Tea</p></body></html>".encode("utf-16"), "Tea"),
        ("report.xls", "\ufeffItem\tPrice\nTea\t4.50\n".encode("utf-16-le"), "Item\tPrice\nTea\t4.50"),
        ("letter.doc", b"<meta charset=utf-8><p>Tea at five.", "Tea at five."),
        ("letter.doc", b"Tea at five.", "Tea at five."),
    ],
    ids=["a table of HTML", "a page in UTF-16", "a table of tabs", "a letter of HTML", "a letter of text"],
)  # fmt: skip
async def test_a_page_or_text_is_read_under_a_name_of_office(name: str, raw: bytes, text: str) -> None:
    assert (await text_of(raw, name)).strip() == text


async def test_a_workbook_is_known_by_its_content_and_a_mail_of_outlook_by_its_name() -> None:
    assert "15%" in await text_of(xls(), "report")
    assert await reason(xls()[:8] + bytes(600), "a.msg") == "it is a mail of Outlook; save it as EML"


async def test_words_of_a_drawing_in_a_page_are_read() -> None:
    page = "<p>Tea</p><svg><title>Close</title><defs><text>x</text></defs><g><text>at</text><text>five</text></g></svg>"
    assert (await text_of(page.encode(), "a.html")).split() == ["Tea", "at", "five"]
