"""Words that lie in parts, codes or frames of a file, where a plain look at it does not find them."""

import io
import json

import pytest
from pypdf import PdfReader, PdfWriter

from tests.gateway.documents import changed, links, paragraph, pdf, word
from tests.gateway.extracting import noted, text_of


@pytest.mark.parametrize(
    ("raw", "name", "text"),
    [
        ("<frameset><frame src=a><noframes><body><p>Tea</p></body></noframes></frameset>", "a.html", "Tea"),
        ('<p>At</p><iframe srcdoc="&lt;p&gt;five&lt;/p&gt;"></iframe>', "a.html", "At\nfive"),
        ("<p>Donau<wbr>dampf</p>", "a.html", "Donaudampf"),
        ("\x1b[1;31mERR\x1b[0m K\u00e4se\n", "a.log", "ERR K\u00e4se"),
        ("<?xml version='1.0'?><a>T&amp;C &#228;</a>", "a.xml", "<?xml version='1.0'?><a>T&C \u00e4</a>"),
        (
            "BEGIN:VCARD\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BC;J=\n=C3=B6\nTEL:1\n",
            "a.vcf",
            "BEGIN:VCARD\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M\u00fc;J\u00f6\nTEL:1",
        ),
        ('{"cells": "none"}', "a.ipynb", '{"cells": "none"}'),
    ],
    ids=[
        "beside frames",
        "in a frame",
        "where a line may break",
        "colours",
        "codes of XML",
        "an old card",
        "no notebook",
    ],
)
async def test_words_are_read_as_they_are_shown(raw: str, name: str, text: str) -> None:
    assert (await text_of(raw.encode(), name)).strip() == text


async def test_a_notebook_is_read_cell_by_cell_without_its_pictures() -> None:
    outputs: list[object] = [
        {"output_type": "stream", "text": ["printed\n"]},
        {"data": {"image/png": "iVBOR", "text/plain": "<Figure>"}},
        {"data": {"text/plain": ["42"]}},
        {"output_type": "error", "ename": "ValueError", "evalue": "no tea", "traceback": []},
    ]
    cells: list[object] = [
        {"cell_type": "markdown", "source": ["# Tea\n", "at five"]},
        {"cell_type": "code", "source": "x = 1", "outputs": outputs},
    ]
    text, (note,) = await noted(json.dumps({"cells": cells}).encode(), "a.ipynb")
    assert text == "# Tea\nat five\n\nx = 1\n\nprinted\n\n42\n\nValueError: no tea\n"
    assert note == "left out or replaced: 1 picture"


async def test_a_chart_of_a_docx_is_read() -> None:
    parts = {"_rels/document.xml.rels": links(("chart", "chart.xml")), "chart.xml": "<c><t>Tea sold</t><v>42</v></c>"}
    raw = changed(word(paragraph("Sales")), **{f"word/{name}": part for name, part in parts.items()})
    assert await text_of(raw, "a.docx") == "Sales\n[chart: Tea sold | 42]\n"


async def test_the_attachments_of_a_pdf_are_read_behind_its_pages() -> None:
    writer, raw = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf("Cover")))), io.BytesIO()
    writer.add_attachment("a.txt", b"Tea at five.")
    writer.add_attachment("b.zip", b"PK\x05\x06" + bytes(18))
    writer.write(raw)
    text, (note,) = await noted(raw.getvalue(), "a.pdf")
    assert text == "[page 1]\n\nCover\n\n\f[attachment: a.txt]\n\nTea at five.\n"
    assert note == "left out or replaced: attachment b.zip: it is an archive; unpack it and send the files in it"
