"""The text of a file, by a process of its own that a hostile file can only end."""

import io
from collections.abc import AsyncGenerator
from dataclasses import replace

import docx
import pytest

from gateway.files.extraction import extracted
from tests.gateway.documents import paragraph, pdf, with_picture, word, zipped
from tests.gateway.extracting import LIMITS, reason, text_of


def written_by_python_docx() -> bytes:
    """A DOCX of a paragraph and a table of one row."""
    document, raw = docx.Document(), io.BytesIO()
    document.add_paragraph("Tea at five")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "a", "b"
    document.save(raw)
    return raw.getvalue()


@pytest.mark.parametrize(
    ("raw", "name", "text"),
    [
        ("Tea, \u00e9t\u00e9, \u6f22\u5b57".encode(), "a.txt", "Tea, \u00e9t\u00e9, \u6f22\u5b57"),
        ("# Tea\r\n* five".encode("utf-8-sig"), "a.md", "# Tea\r\n* five"),
        ("Tea at five".encode("utf-16"), "a.txt", "Tea at five"),
        (
            b"<title>T</title><script>no()</script><p>Tea <b>at</b> five</p><p>&amp; six</p>",
            "a.html",
            "T\n\nTea at five\n& six",
        ),
        (
            pdf("Tea at five", "Coffee at six"),
            "renamed.txt",
            "[page 1]\n\nTea at five\n\n\f[page 2]\n\nCoffee at six\n\n\f",
        ),
        (pdf("Tea at five").replace(b"%PDF-1", b"%\xe2\xe3\xcf"), "a.pdf", "[page 1]\n\nTea at five\n\n\f"),
        (written_by_python_docx(), "a.docx", "Tea at five\na | b\n"),
    ],
    ids=["text", "markdown with a mark", "UTF-16", "HTML", "PDF by its bytes", "no mark", "DOCX"],
)
async def test_the_text_of_every_kind_of_file(raw: bytes, name: str, text: str) -> None:
    assert await text_of(raw, name) == text


@pytest.mark.parametrize(
    ("raw", "name", "why"),
    [
        (b"a\0b", "a.txt", "the file is binary: it contains NUL bytes"),
        (b" \n ", "a.txt", "the file contains no text (a scan?)"),
        (pdf(""), "a.pdf", "the file contains no text (a scan?)"),
        (b"%PDF-1.7\n garbage", "a.pdf", "the file is damaged (PDF)"),
        (b"no pdf", "a.pdf", "the format is unsupported, or the content does not match the file name"),
        (zipped(a="x"), "a.docx", "it is an archive; unpack it and send the files in it"),
        (b"\x89PNG\r\n", "a.png", "it is a picture, and pictures are not read here (MEMLOOP_OCR)"),
        (zipped(word__document_xml="x")[:-40], "a.docx", "the file is damaged (BadZipFile)"),
    ],
    ids=["NUL", "blank", "scan", "damaged PDF", "no PDF", "ZIP", "picture", "damaged DOCX"],
)
async def test_a_file_without_text_gets_a_reason(raw: bytes, name: str, why: str) -> None:
    assert await reason(raw, name) == why


async def test_a_file_that_takes_too_much_memory_ends_its_own_process_only() -> None:
    small = replace(LIMITS, memory_bytes=200 << 20)
    deep = b"<p>" + b"<i>x</i>" * (8 << 20)
    assert await reason(deep, "a.html", small) in ("extraction ran out of memory", "the parser crashed")


async def test_a_process_that_waits_for_ever_is_killed() -> None:
    assert await reason(b"x" * 100, "a.txt", replace(LIMITS, wall_s=0.001)) == "the file needs more than 0.001 s"


async def test_a_text_over_its_limit_is_refused() -> None:
    limits = replace(LIMITS, text_bytes=1000)
    assert await reason(b"x" * 100_000, "a.txt", limits) == "the text is longer than 1000 bytes"


async def test_the_process_sees_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSTARTUP", "/nonexistent")
    monkeypatch.setenv("PYTHONPATH", "/nonexistent")
    assert await text_of(b"text", "a.txt") == "text"


async def test_a_source_that_fails_fails_the_extraction() -> None:
    async def broken() -> AsyncGenerator[bytes]:
        yield b"half"
        raise OSError("the storage is gone")

    with pytest.raises(OSError, match="the storage is gone"):
        _ = [block async for block in extracted(broken(), name="a.txt", media_type="", limits=LIMITS, notes=[])]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (
            (
                "<table><tr><th>Town</th><th>Ferries</th></tr><tr><td>Aren</td><td><b>4</b> a day</td></tr>"
                "<tr><td>Bly</td><td></td></tr></table><p>End</p>"
            ),
            "Town | Ferries\nAren | 4 a day\nBly |\nEnd",
        ),
        (
            "<table><tr><td><p>A page.</p><p>Its text.</p><td><table><tr><td>a<td>b</tr></table></table>",
            "A page.\nIts text.\na | b",
        ),
    ],
    ids=["data", "layout"],
)
async def test_a_row_of_an_html_table_is_one_line(html: str, text: str) -> None:
    assert await text_of(html.encode(), "a.html") == text


async def test_links_side_by_side_are_words_of_their_own() -> None:
    html = "<nav><a>Docs</a><a><b>B</b>log</a></nav><p>See <a>one</a>, <a>two</a>.</p>"
    assert await text_of(html.encode(), "a.html") == "Docs Blog\nSee one, two."


async def test_a_page_of_a_pdf_that_is_a_picture_says_so() -> None:
    text = await text_of(with_picture(pdf("One.", "", "Three."), page=1), "a.pdf")
    assert "\f[page 2]\n\n[This page is a picture without text.]\n\n\f[page 3]" in text


async def test_a_pdf_of_nothing_but_pictures_is_refused() -> None:
    assert "a scan?" in await reason(with_picture(pdf(""), page=0), "a.pdf")


async def test_each_page_of_a_pdf_is_numbered_and_ends_with_a_form_feed() -> None:
    text = await text_of(pdf("One.", "", "Three."), "a.pdf")
    assert text == "[page 1]\n\nOne.\n\n\f\f[page 3]\n\nThree.\n\n\f"


BREAK = '<w:br w:type="page"/>'


async def test_hard_page_breaks_of_a_docx_begin_pages() -> None:
    broken, third = f"<w:p><w:r>{BREAK}</w:r></w:p>", f"<w:p><w:r>{BREAK}<w:t>Three.</w:t></w:r></w:p>"
    body = paragraph("One.") + broken + paragraph("Two.") + third
    assert await text_of(word(body), "a.docx") == "One.\n\f[page 2]\n\n\nTwo.\n\f[page 3]\n\nThree.\n"


async def test_pages_as_a_word_processor_rendered_them_win_over_hard_breaks() -> None:
    rendered = "<w:p><w:r><w:lastRenderedPageBreak/><w:t>Two.</w:t></w:r></w:p>"
    body = f"{paragraph('One.')}<w:p><w:r>{BREAK}</w:r></w:p>{rendered}"
    assert (await text_of(word(body), "a.docx")).count("[page ") == 1


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


BOX = f"<w:txbxContent><w:p>{run('In a box.')}</w:p></w:txbxContent>"
CELL = f"<w:tc><w:p>{run('7')}</w:p></w:tc>"
INNER = f"<w:tbl><w:tr><w:tc><w:p>{run('Hal Moor')}</w:p></w:tc></w:tr></w:tbl><w:p/>"


CHANGE = (
    f"<w:p>{run('The fee is ')}<w:del w:id='1' w:author='A'><w:r><w:delText>100</w:delText></w:r></w:del>"
    f"<w:ins w:id='2' w:author='A'>{run('250 euros')}</w:ins>{run('.')}</w:p>"
)
MOVE = (
    f"<w:p><w:moveFrom w:id='1'>{run('Moved.')}</w:moveFrom></w:p>"
    f"<w:p><w:moveTo w:id='2'>{run('Moved.')}</w:moveTo></w:p>"
)
CONTROL = f"<w:sdt><w:sdtContent><w:p>{run('Tenant: Ada')}</w:p></w:sdtContent></w:sdt>"
CONTROL_IN_LINE = f"<w:p>{run('To: ')}<w:sdt><w:sdtPr/><w:sdtContent>{run('Ada')}</w:sdtContent></w:sdt></w:p>"
CONTROL_OF_ROWS = f"<w:tbl><w:tr>{CELL}</w:tr><w:sdt><w:sdtContent><w:tr>{CELL}</w:tr></w:sdtContent></w:sdt></w:tbl>"
TABLE_IN_TABLE = f"<w:tbl><w:tr>{CELL}<w:tc>{INNER}</w:tc></w:tr></w:tbl>"
TEXT_BOX = (
    f"<w:p>{run('Before.')}<w:r><mc:AlternateContent>"
    f"<mc:Choice Requires='wps'><wps:txbx>{BOX}</wps:txbx></mc:Choice>"
    f"<mc:Fallback><w:pict><v:textbox>{BOX}</v:textbox></w:pict></mc:Fallback>"
    "</mc:AlternateContent></w:r></w:p>"
)
FORMULA = f"<w:p><m:oMath><m:r><m:t>E=mc</m:t></m:r></m:oMath><w:fldSimple>{run('2')}</w:fldSimple></w:p>"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (CHANGE, "The fee is 250 euros.\n"),
        (MOVE, "\nMoved.\n"),
        (CONTROL, "Tenant: Ada\n"),
        (CONTROL_IN_LINE, "To: Ada\n"),
        (CONTROL_OF_ROWS, "7\n7\n"),
        (TABLE_IN_TABLE, "7 | Hal Moor\n"),
        (TEXT_BOX, "Before.\nIn a box.\n"),
        (FORMULA, "E=mc2\n"),
    ],
    ids=["change", "move", "control", "control in a line", "control of rows", "table in table", "box", "formula"],
)
async def test_no_text_of_a_docx_is_lost(body: str, text: str) -> None:
    assert await text_of(word(body), "a.docx") == text


@pytest.mark.parametrize(
    ("kind", "attributes", "title"),
    [("footnote", "", "footnote"), ("endnote", "", "endnote"), ("comment", "w:author='Ann'", "comment by Ann")],
)
async def test_notes_of_a_docx_stand_where_they_are_referred_to(kind: str, attributes: str, title: str) -> None:
    body = f"<w:p>{run('Rent is due.')}<w:r><w:{kind}Reference w:id='3'/></w:r>{run(' Always.')}</w:p>"
    notes = f"<w:{kind} w:id='3' {attributes}><w:p>{run('Not in May.')}</w:p></w:{kind}>"
    text = await text_of(word(body, **{f"{kind}s": notes}), "a.docx")
    assert text == f"Rent is due. [{title}: Not in May.] Always.\n"
