"""Numbers as the cells of a spreadsheet show them."""

import pytest

from gateway.extract.number_formats import shower
from tests.gateway.documents import changed, links, xlsx
from tests.gateway.extracting import noted, text_of

_ACCOUNTS = '_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_);_(@_)'


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("0%", 0.15, "15%"),
        ("0 %", 0.15, "15 %"),
        ("0.00", 2.675, "2.68"),
        ("0.0000", 123456789012.0, "123456789012.0000"),
        ("#.##", 0.5, ".5"),
        ("#,##0.00 \u20ac", 1234.5, "1,234.50 \u20ac"),
        ('#,##0.00\\ "\u20ac"', -7, "-7.00 \u20ac"),
        ("[$\u20ac-407] #,##0.00", 2, "\u20ac 2.00"),
        ("kr #,##0", -5, "kr -5"),
        (_ACCOUNTS, 1234.5, "$1,234.50"),
        (_ACCOUNTS, -1234.5, "-$1,234.50"),
        (_ACCOUNTS, 0, "$-"),
        ('0 "kg";[Red]0 "kg"', -3, "-3 kg"),
        ('"Profit "0;"Loss "0', -3, "Loss 3"),
        ('"Yes";"Yes";"No"', 0, "No"),
        ("000-00-0000", 123456789, "123-45-6789"),
        ('0.0,,"M"', 12345678, "12.3M"),
        ('[>=1000]0.0,"K";0', 1500, "1.5K"),
        ("0.00E+00", 12345, "1.23E+04"),
        ("##0.0E+0", 12345, "12.3E+3"),
        ("# ?/?", 2.5, "2 1/2"),
        ("# ?/8", 1.24, "1 2/8"),
        ("dd.mm.yyyy", 45355, "04.03.2024"),
        ("d-mmm-yy", 45355, "4-Mar-24"),
        ("[$-409]dddd, mmmm d, yyyy", 45355, "Monday, March 4, 2024"),
        ("[$-407]d. mmmm yyyy", 45355, "2024-03-04"),
        ("[$-F800]dddd, mmmm dd, yyyy", 45355, "2024-03-04"),
        ("h:mm AM/PM", 0.739583333333, "5:45 PM"),
        ("[h]:mm:ss", 1.26041666666667, "30:15:00"),
        ("[h]:mm", -0.5, "-12:00"),
        ("mm:ss.0", 0.00012, "00:10.4"),
        ("hh:mm:ss", -5, "-5"),
    ],
)
def test_a_number_is_shown_by_its_format(code: str, value: float, shown: str) -> None:
    show = shower(code, is_1904=False)
    assert show is not None
    assert show(value) == shown


@pytest.mark.parametrize("code", ["General", "@", ";;;"])
def test_a_format_without_places_shows_numbers_as_they_are(code: str) -> None:
    assert shower(code, is_1904=False) is None


@pytest.mark.parametrize(("days", "shown"), [(366.25, "1905-01-01 06:00"), (-1, "-1904-01-02 00:00")])
def test_days_of_a_macintosh_begin_in_1904_and_may_be_negative(days: float, shown: str) -> None:
    show = shower("yyyy-mm-dd hh:mm", is_1904=True)
    assert show is not None
    assert show(days) == shown


def styled(cells: str, *codes: str) -> bytes:
    """A workbook of one sheet with these cells behind the first two; style 1 has the first code, and so on."""
    numbers = "".join(f"<numFmt numFmtId='{n}' formatCode='{code}'/>" for n, code in enumerate(codes, start=164))
    styles = "".join(f"<xf numFmtId='{number}'/>" for number in (0, *range(164, 164 + len(codes))))
    parts = {
        "xl/styles.xml": f"<styleSheet><numFmts>{numbers}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>",
        "xl/_rels/workbook.xml.rels": links(("worksheet", "worksheets/s1.xml"), ("styles", "styles.xml")),
    }
    return changed(xlsx("Sum", value=f'1</v></c>{cells}<c r="Z1"><v>8'), **parts)


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ('<c r="C1" s="1"><v>0.15</v></c>', "15%"),
        ('<c t="n" s="1" r="C1"><f>A1/2</f><v>0.15</v></c>', "15%"),
        ('<c r="C1" s="2"><v>-5</v></c>', "-5"),
        ('<c r="C1" s="1" t="str"><v>0.15</v></c>', "0.15"),
        ('<c r="C1" s="1" t="b"><v>1</v></c>', "TRUE"),
    ],
    ids=["a value", "of a formula", "a time before time", "a text", "a truth"],
)
async def test_a_cell_of_a_sheet_is_read_as_it_is_shown(cell: str, shown: str) -> None:
    text = await text_of(styled(cell, "0%", "hh:mm:ss"), "a.xlsx")
    assert text.split("\n")[2].split(" | ")[:3] == ["Sum", "1", shown]


async def test_a_formula_without_a_value_is_shown_and_counted() -> None:
    raw = styled('<c r="C1"><f>A1&amp;B1</f></c><c r="D1"><f>1+1</f><v></v></c><c r="E1" t="str"><f>""</f><v></v></c>')
    text, (note,) = await noted(raw, "a.xlsx")
    assert text.split("\n")[2].split(" | ")[:5] == ["Sum", "1", "=A1&B1", "=1+1", ""]
    assert note == "left out or replaced: 2 formulas without a value"
