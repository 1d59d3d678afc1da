"""What documents hold beside their running text: forms, automatic numbers, attachments, odd packages."""

import io
import zipfile
from collections.abc import Sequence

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, NumberObject, TextStringObject

from tests.gateway.documents import (
    PLACED,
    STRICT,
    changed,
    links,
    mail,
    opened,
    paragraph,
    pdf,
    unzipped,
    word,
    xlsx,
    zipped,
)
from tests.gateway.extracting import noted, reason, text_of


def form(*fields: dict[str, object]) -> bytes:
    """A PDF of one page with these annotations."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("An order."))))
    annotations, corners = ArrayObject(), ArrayObject(map(FloatObject, (10, 10, 90, 30)))
    for field in fields:
        entries = {NameObject(f"/{key}"): value for key, value in field.items()}
        begun = {NameObject("/Type"): NameObject("/Annot"), NameObject("/Rect"): corners}
        annotations.append(writer._add_object(DictionaryObject(begun | entries)))  # pyright: ignore[reportPrivateUsage, reportArgumentType] - no public way
    writer.pages[0][NameObject("/Annots")] = annotations
    whole = DictionaryObject({NameObject("/Fields"): annotations})
    writer.root_object[NameObject("/AcroForm")] = whole
    raw = io.BytesIO()
    writer.write(raw)
    return raw.getvalue()


def widget(name: str, kind: str, value: object, **more: object) -> dict[str, object]:
    return {
        "Subtype": NameObject("/Widget"),
        "FT": NameObject(f"/{kind}"),
        "T": TextStringObject(name),
        "V": value,
    } | more


async def test_values_ticks_and_notes_of_a_filled_form_are_read() -> None:
    ticked = NameObject("/Yes")
    shown = DictionaryObject({NameObject("/N"): DictionaryObject({ticked: DictionaryObject()})})
    raw = form(
        widget("Quantity", "Tx", TextStringObject("42 crates")),
        widget(
            "Express",
            "Btn",
            ticked,
            AS=ticked,
            AP=shown,
        ),
        widget("Insured", "Btn", NameObject("/Off"), AS=NameObject("/Off")),
        {
            "Subtype": NameObject("/Text"),
            "Contents": TextStringObject("Call first."),
            "T": TextStringObject("Ann"),
            "F": NumberObject(0),
        },
    )
    text = await text_of(raw, "a.pdf")
    assert "An order." in text
    assert "42 crates" in text
    assert "[Express: ticked]" in text
    assert "Insured: ticked" not in text
    assert "[note by Ann: Call first.]" in text


LEVELS = (
    '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1.%2)"/></w:lvl>'
    '<w:lvl w:ilvl="2"><w:start w:val="4"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="(%3)"/></w:lvl>'
)
NUMBERING = (
    f'<w:abstractNum w:abstractNumId="7">{LEVELS}</w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
)
STYLES = (
    '<w:style w:styleId="Clause"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    '<w:style w:styleId="Article"><w:basedOn w:val="Clause"/></w:style>'
)


def numbered(text: str, level: int) -> str:
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr>')


async def test_automatic_numbers_of_a_docx_stand_before_their_clauses() -> None:
    body = (
        numbered("Rent", 0) + numbered("Due", 1) + numbered("Late", 1) + numbered("Fee", 2) + numbered("Cap", 2)
        + paragraph("Pets", '<w:pStyle w:val="Article"/>') + numbered("Dogs", 1) + paragraph("End")
    )  # fmt: skip
    text = await text_of(word(body, numbering=NUMBERING, styles=STYLES), "a.docx")
    assert text.splitlines() == [
        *("1. Rent", "1.a) Due", "1.b) Late", "(IV) Fee", "(V) Cap", "2. Pets", "2.a) Dogs", "End"),
    ]


async def test_automatic_numbers_of_an_odt_stand_before_their_items() -> None:
    styles = (
        '<text:list-style xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" style:name="L">'
        '<text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/></text:list-style>'
    )
    items = "".join(f"<text:list-item><text:p>{text}</text:p></text:list-item>" for text in ("Rent", "Pets"))
    raw = opened("text", f'<text:list text:style-name="L">{items}</text:list>', styles)
    assert await text_of(raw, "a.odt") == "1. Rent\n2. Pets\n"


MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
RAISED = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>6</w:t></w:r>'


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        pytest.param(
            '<w:r><w:sym w:font="Wingdings" w:char="F0FE"/><w:t> paid</w:t></w:r>', "\u2612 paid", id="a tick"
        ),
        pytest.param('<w:r><w:sym w:font="Symbol" w:char="F0A3"/><w:t> 5</w:t></w:r>', "\u2264 5", id="at most"),
        pytest.param('<w:r><w:sym w:font="Webdings" w:char="zz"/><w:t>5</w:t></w:r>', "5", id="an unknown sign"),
        pytest.param(f"<w:r><w:t>10</w:t></w:r>{RAISED}", "10^6", id="a power"),
        pytest.param(f"<w:r><w:t>Ada</w:t></w:r>{RAISED}", "Ada6", id="a raised number of a note"),
        pytest.param(
            f'<m:oMath xmlns:m="{MATH}"><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num>'
            "<m:den><m:r><m:t>x+2</m:t></m:r></m:den></m:f></m:oMath>",
            "1/(x+2)",
            id="a fraction",
        ),
    ],
)
async def test_what_a_docx_shows_by_its_form_is_written_out(inside: str, text: str) -> None:
    assert await text_of(word(f"<w:p>{inside}</w:p>"), "a.docx") == f"{text}\n"


@pytest.mark.parametrize(
    ("attributes", "shown", "text"),
    [
        pytest.param('value-type="float" office:value="0"', "#DIV/0!", "#DIV/0!", id="an error kept as 0"),
        pytest.param('value-type="string" office:string-value=""', "#N/A", "#N/A", id="an error kept as no text"),
        pytest.param('value-type="float" office:value="0"', "Err:502", "Err:502", id="an error of LibreOffice"),
        pytest.param('value-type="percentage" office:value="0.15"', "15%", "15%", id="a percentage"),
        pytest.param('value-type="currency" office:value="-12.50"', "−12,50 €", "−12,50 €", id="an amount"),
        pytest.param('value-type="currency" office:value="-12.50"', "(12,50 €)", "-12,50 €", id="brackets"),
        pytest.param('value-type="date" office:date-value="1865-04-15"', "15.4.65", "1865-04-15", id="no century"),
        pytest.param('value-type="date" office:date-value="2026-05-01"', "1. Mai 2026", "1. Mai 2026", id="a day"),
        pytest.param(
            'value-type="date" office:date-value="2026-05-01T19:30:00"', "x", "2026-05-01 19:30:00", id="both"
        ),
        pytest.param('value-type="time" office:time-value="PT27H05M00S"', "27:05", "27:05", id="more than a day"),
        pytest.param('value-type="boolean" office:boolean-value="true"', "WAHR", "WAHR", id="a truth"),
        pytest.param('value-type="string"', "tea<text:tab/>at<text:s/>five", "tea at five", id="a tab"),
    ],
)
async def test_a_cell_of_an_ods_is_read_as_it_is_shown(attributes: str, shown: str, text: str) -> None:
    cell = f"<table:table-cell office:{attributes}><text:p>{shown}</text:p></table:table-cell>"
    assert (
        await text_of(sheet_of(f"<table:table-row>{cell}</table:table-row>"), "a.ods")
        == f"[sheet 1: S]\n\n{text}\n\n\f"
    )


async def test_a_book_begins_with_its_title_and_authors() -> None:
    raw = PLACED["a.epub"]("Tea at five.")
    told = b"<metadata><title>The Whale</title><creator>Ada</creator></metadata><manifest>"
    raw = changed(raw, **{"o/b.opf": unzipped(raw)["o/b.opf"].replace(b"<manifest>", told)})
    assert await text_of(raw, "a.epub") == "The Whale\nAda\n[chapter 1]\n\nTea at five.\n\n\f"


async def test_repeated_cells_of_an_ods_are_counted_and_comments_stand_behind_the_rows() -> None:
    seven = '<table:table-cell table:number-columns-repeated="{}" office:value-type="float" office:value="7"/>'
    empty = '<table:table-row table:number-rows-repeated="{}"><table:table-cell {}/></table:table-row>'
    note = "<office:annotation><dc:creator>Ada</dc:creator><text:p>late</text:p></office:annotation>"
    wide = 'table:number-columns-repeated="16384"'
    text = await text_of(
        sheet_of(
            empty.format(3, wide)
            + f"<table:table-row><table:table-cell/>{seven.format(2)}<table:table-cell>{note}</table:table-cell>"
            + f"<table:table-cell {wide}/></table:table-row>"
            + f'<table:table-row table:number-rows-repeated="2"><table:table-cell/>{seven.format(1)}</table:table-row>'
            + empty.format(1048570, wide)
        ),
        "a.ods",
    )
    assert text == "[sheet 1: S]\n\n7 | 7\n7\n7\n[comment on D4 by Ada: late]\n\n\f"


@pytest.mark.parametrize(("columns", "rows"), [(16_384, 1_048_576), (10**12, 1), (1, 10**12)])
async def test_cells_of_an_ods_that_are_repeated_for_ever_end_in_a_sentence(columns: int, rows: int) -> None:
    cell = f'<table:table-cell table:number-columns-repeated="{columns}"><text:p>tea</text:p></table:table-cell>'
    raw = sheet_of(f'<table:table-row table:number-rows-repeated="{rows}">{cell}</table:table-row>')
    assert await reason(raw, "a.ods") == "extraction ran out of memory"


def sheet_of(rows: str) -> bytes:
    """An ODS of one sheet."""
    return opened("spreadsheet", f'<table:table table:name="S">{rows}</table:table>')


def _flat(raw: bytes) -> bytes:
    """The content of an OpenDocument file as the one XML file that LibreOffice writes."""
    return unzipped(raw)["content.xml"].replace(b"office:document-content", b"office:document")


@pytest.mark.parametrize("kind", ["odt", "ods", "odp"])
async def test_a_flat_open_document_reads_as_the_packed_one(kind: str) -> None:
    raw = PLACED[f"a.{kind}"]("Tea at five.", "The key is red.", "A boat.")
    assert await text_of(_flat(raw), f"a.f{kind}") == await text_of(raw, f"a.{kind}")


async def test_pictures_and_formulas_inside_a_flat_document_are_left_out_and_read() -> None:
    math = '<math><semantics><mi>E</mi><annotation encoding="StarMath 5.0">E = m c^2</annotation></semantics></math>'
    picture = "<draw:frame><draw:image><office:binary-data>aGVsbG8=</office:binary-data></draw:image></draw:frame>"
    body = f"<text:p>So {picture}<draw:frame><draw:object>{math}</draw:object></draw:frame>holds.</text:p>"
    assert await text_of(_flat(opened("text", body)), "a.fodt") == "So  E = m c^2 holds.\n"


@pytest.mark.parametrize("raw", [b"", b"Tea at five.", b"<office:document", b"<a/>"])
async def test_a_damaged_flat_document_ends_in_a_sentence(raw: bytes) -> None:
    assert "damaged" in await reason(raw, "a.fods")


async def test_a_formula_of_an_odt_stands_in_its_sentence() -> None:
    body = '<text:p>Einstein: <draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>holds.</text:p>'
    math = '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mi>E</mi>{}</semantics></math>'
    typed = math.format('<annotation encoding="StarMath 5.0">E = m c^2</annotation>')
    raw = opened("text", body, **{"Object 1/content.xml": typed})
    assert await text_of(raw, "a.odt") == "Einstein:  E = m c^2 holds.\n"


def with_backslashes(raw: bytes) -> bytes:
    """The archive with folders as some programs of Windows write them."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, part in unzipped(raw).items():
            entry = zipfile.ZipInfo(name)
            entry.filename = name.replace("/", "\\")
            archive.writestr(entry, part)
    return written.getvalue()


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"\n\n" + pdf("Tea at five."), "a.pdf"),
        (b"\xef\xbb\xbf" + pdf("Tea at five."), "a.pdf"),
        (word(paragraph("Tea at five."), main="document2.xml"), "a.docx"),
        (word(paragraph("Tea at five."), space=STRICT), "a.docx"),
        (word(paragraph("Tea at five.")), "a.docm"),
        (word(paragraph("Tea at five.")), "renamed.bin"),
        (xlsx("Tea at five."), "renamed.docx"),
        (b"\r\n" + word(paragraph("Tea at five.")), "a.docx"),
        (with_backslashes(word(paragraph("Tea at five."))), "a.docx"),
        (with_backslashes(xlsx("Tea at five.")), "a.xlsx"),
    ],
    ids=[
        *("newlines before a PDF", "a mark before a PDF", "Word online", "strict", "docm", "no name", "another name"),
        *("a newline before a DOCX", "backslashes in a DOCX", "backslashes in an XLSX"),
    ],
)
async def test_odd_packages_are_read(raw: bytes, name: str) -> None:
    assert "Tea at five." in await text_of(raw, name)


@pytest.mark.parametrize(
    ("comments", "told"),
    [
        (
            "<c><author>Ann</author><comment ref='B1' authorId='0'><r><t>is</t></r><r><t> so</t></r></comment></c>",
            "\n[comment on B1 by Ann: is so]\nTea in a box",
        ),
        ("<c><author>", ""),
    ],
    ids=["whole", "damaged"],
)
async def test_comments_and_boxes_stand_behind_the_rows_of_their_sheet(comments: str, told: str) -> None:
    linked = links(("comments", "../comments.xml"), ("drawing", "../drawing.xml"))
    boxes = "<d><txBody><p><t>Tea in</t></p><p> <t>a box</t></p></txBody></d>"
    parts = {"worksheets/_rels/s1.xml.rels": linked, "comments.xml": comments, "drawing.xml": boxes}
    raw = changed(xlsx("Tea", "Coffee"), **{f"xl/{name}": part for name, part in parts.items()})
    text = await text_of(raw, "a.xlsx")
    assert text == f"[sheet 1: S1]\n\nTea | 7.5{told}\n\n\f[sheet 2: S2]\n\nCoffee | 7.5\n\n\f"


@pytest.mark.parametrize(
    "cell",
    [
        '<c r="B1" t="e"><v>#N/A</v></c>',
        '<c t="e" s="4" r="B1"><f>VLOOKUP(A1,C:D,2,0)</f><v>#N/A</v></c>',
        '<c r="B1" t="e"><f t="shared" si="0"/><v>#N/A</v></c>',
    ],
    ids=["a value", "of a formula", "of a shared formula"],
)
async def test_an_error_of_a_sheet_stands_in_its_cell(cell: str) -> None:
    raw = xlsx("Sum", value=f'1</v></c></row><row r="3"><c r="A3"><v>7</v></c>{cell.replace("B1", "B3")}<c r="C3"><v>8')
    assert await text_of(raw, "a.xlsx") == "[sheet 1: S1]\n\nSum | 1\n7 | #N/A | 8\n\n\f"


@pytest.mark.parametrize(
    ("value", "shown"),
    [("12", "12"), ("0.30000000000000004", "0.3"), ("1.5E-13", "1.5e-13"), ("123456789012345", "123456789012345")],
)
async def test_numbers_of_a_sheet_keep_fifteen_digits(value: str, shown: str) -> None:
    assert await text_of(xlsx("Sum", value=value), "a.xlsx") == f"[sheet 1: S1]\n\nSum | {shown}\n\n\f"


async def test_a_mail_is_read_with_its_attachments_and_names_those_it_cannot_read() -> None:
    files = {"a.docx": PLACED["a.docx"]("Tea at five."), "b.zip": zipped(x="x"), "c.png": b"\x89PNG"}
    text, (note,) = await noted(mail("See the note.", attached=files), "a.eml")
    assert text.startswith("Subject: A note\nFrom: ada@example.org\nTo: ben@example.org\n\nSee the note.")
    assert "[attachment: a.docx]\n\nTea at five." in text
    assert "attachment b.zip: it is an archive" in note
    assert "attachment c.png: it is a picture" in note


CHOICE = (
    "--b\nContent-Type: multipart/alternative; boundary=c\n\n--c\n\nTea\n--c\nContent-Type: text/html\n\nTea\n--c--\n"
)
FOOTER = "--b\nContent-Type: text/plain\n\nThe footer.\n"
DELIVERY = "--b\nContent-Type: message/delivery-status\n\nStatus: 5.3.0\n\nAction: failed\n"


@pytest.mark.parametrize(
    ("kind", "parts", "said"),
    [
        ("mixed", CHOICE + FOOTER, ["Tea", "The footer."]),
        ("mixed", "--b\nContent-Type: text/html\n\n<p>Tea</p>\n" + FOOTER, ["Tea", "The footer."]),
        ("report", "--b\n\nTea\n" + DELIVERY, ["Tea", "Status: 5.3.0\n\nAction: failed"]),
        ("mixed", "no part begins", ["[attachment: unnamed]", "no part begins"]),
    ],
    ids=["behind alternatives", "behind a page", "of a report", "without parts"],
)
async def test_each_text_of_a_mail_is_read(kind: str, parts: str, said: list[str]) -> None:
    end = "--b--\n" if parts.startswith("--") else ""
    raw = f"Subject: A\nMIME-Version: 1.0\nContent-Type: multipart/{kind}; boundary=b\n\n{parts}{end}".encode()
    text = await text_of(raw, "a.eml")
    assert [part.strip() for part in text.removeprefix("Subject: A").split("\n\n") if part.strip()] == [
        line for part in said for line in part.split("\n\n")
    ]


async def test_a_mail_in_a_mail_in_a_mail_ends() -> None:
    raw = mail("the innermost")
    for _ in range(9):
        raw = mail("outer", attached={"a.eml": raw})
    text, notes = await noted(raw, "a.eml")
    assert text.count("outer") == 5
    assert "lies too deep" in notes[0]


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.7z", "a.rar"])
async def test_archives_are_refused_by_name(name: str) -> None:
    assert await reason(b"anything", name) == "it is an archive; unpack it and send the files in it"


async def test_words_that_a_hyphen_parts_at_a_line_end_are_whole() -> None:
    raw = pdf("The agree-) Tj 0 -14 Td (ment of 5-) Tj 0 -14 Td (10 years holds.")
    assert "agreement of 5- 10 years holds." in " ".join((await text_of(raw, "a.pdf")).split())


async def test_ligatures_are_letters_as_searches_write_them() -> None:
    assert await text_of("The o\ufb03ce \ufb01le \ufb02ows.".encode(), "a.txt") == "The office file flows."


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>10<sup>6</sup> m<sup>2</sup> of H<sub>2</sub>O, 10<sup>-3</sup>", "10^6 m2 of H2O, 10^-3"),
        ("<select><option>Tea<option selected value=c>Coffee</select>", "Tea\n\u2612 Coffee"),
        ("<ol><li>Rent<li><p>Pets</ol><ol start=4 type=a><li>Dogs</ol>", "1. Rent\n2. Pets\nd. Dogs"),
        (
            (
                "<p>Name: <input value='Ada'></p><p><input type=checkbox checked> yes <input type=radio> no"
                "<input type=hidden value=x>"
            ),
            "Name: Ada\n\u2612 yes \u2610 no",
        ),
    ],
    ids=["powers", "a choice", "lists", "fields"],
)
async def test_what_a_page_shows_without_text_nodes_is_read(html: str, text: str) -> None:
    assert await text_of(html.encode(), "a.html") == text


async def test_automatic_numbers_of_a_slide_stand_before_its_points() -> None:
    raw = PLACED["a.pptx"]("Rent</a:t></a:r></a:p><a:p><a:pPr><a:buAutoNum type='romanUcPeriod'/></a:pPr><a:r><a:t>Due")
    assert await text_of(raw, "a.pptx") == "[slide 1]\n\nRent\nI. Due\n\n\f"


def _lines_across(rows: Sequence[tuple[str, str]]) -> bytes:
    """A PDF that writes each row from left to right, below a title."""
    cells = [
        (x, 150 - 11 * row, text) for row, pair in enumerate(rows) for x, text in zip((10, 110), pair, strict=True)
    ]
    shown = ") Tj ".join(f"/F 7 Tf 1 0 0 1 {x} {y} Tm ({text}" for x, y, text in cells)
    return pdf(f") Tj /F 7 Tf 1 0 0 1 40 180 Tm (A title that goes over both of the columns) Tj {shown}")


async def test_two_columns_of_prose_are_read_one_after_the_other() -> None:
    left = (
        *("The ferry to Aren leaves", "at seven in the morning", "and returns at noon when"),
        *("the tide allows it to do", "so, which in the winters", "of our days is not often"),
    )
    right = (
        *("The harbour was built by", "masons from the north in", "the winter of 1911 after"),
        *("a storm broke the old one", "and took the lamp and its", "keeper, who was not seen"),
    )
    text = " ".join((await text_of(_lines_across(list(zip(left, right, strict=True))), "a.pdf")).split())
    assert f"A title that goes over both of the columns {' '.join(left)} {' '.join(right)}" in text


async def test_a_table_of_two_columns_is_read_row_by_row() -> None:
    rows = [
        ("Rent", "900"),
        ("Heating and water", "120"),
        ("Tax", "7"),
        ("Lift", "15"),
        ("Garden", "3"),
        ("Sum", "1,045"),
    ]
    text = await text_of(_lines_across(rows), "a.pdf")
    assert all(f"{name} {value}" in text for name, value in rows)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"Tea{\footnote\pard\plain {\super\chftn} or coffee} at five", "Tea [footnote: or coffee] at five"),
        (r"Tea{\*\atnauthor Ann}{\*\annotation {\*\atnref 1}or coffee} at five", "Tea [comment: or coffee] at five"),
        (r"{\header\pard The plan\par}{\headerf\pard The plan\par}{\footer\par}Tea", "[header: The plan]\nTea"),
        (r"Tea{\shp{\*\shpinst{\sp{\sn wz}{\sv 1}}{\shptxt in a box\par}}{\shprslt again}}", "Tea\nin a box\n"),
        (r"{\pntext\f0 4.2\tab}{\*\pn\pnlvlbody}Tea", "4.2\tTea"),
        (r"{\footnote  }Tea \{\footnotes \'7b", "Tea {{"),
    ],
    ids=["footnote", "comment", "header", "box", "number of a list", "empty note and signs"],
)
async def test_no_text_of_an_rtf_is_lost(written: str, text: str) -> None:
    assert await text_of(rb"{\rtf1\ansi " + written.encode() + b"}", "a.rtf") == text


async def test_a_picture_of_an_rtf_without_its_length_hides_no_text() -> None:
    raw = rb"{\rtf1\ansi Tea {\pict\jpegblip\bin ffd8ff} at five\par}"
    assert (await text_of(raw, "a.rtf")).split() == ["Tea", "at", "five"]
