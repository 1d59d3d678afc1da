"""Which reading of a PDF the readers are measured by, where poppler and PDFium differ."""

import pytest

from benchmarks.extraction.reference import better, is_coded

PROSE = "Lorem ipsum dolor sit amet"


@pytest.mark.parametrize(
    ("poppler", "pdfium", "reference"),
    [
        pytest.param(f"{PROSE} one two", PROSE, f"{PROSE} one two", id="the one with more words"),
        pytest.param("L o r e m ipsum dolor sit amet", PROSE, PROSE, id="the same letters in fewer words"),
        pytest.param("Lo rem ip sum do lor", PROSE, PROSE, id="more letters in fewer words"),
        pytest.param("guest guest", "guuest guest", "guest guest", id="poppler, where both have as many words"),
        pytest.param("È« ÊÀ ½ç ÎÞ ²ú", "全 世 界 无", "全 世 界 无", id="no bytes of GBK as Latin-1"),
        pytest.param("«À¢Ã¡Á¢ Àð¼÷ «ÕÇ¢Â", "´¿¢Ã°£¢ ¿ðº˜", "", id="none, where both take bytes for Latin-1"),
        pytest.param(f"{PROSE} L o r e m i p s u", f"{PROSE} on", f"{PROSE} on", id="no torn line"),
        pytest.param("D a y of b i r t h", "Day", "D a y of b i r t h", id="torn, where the other lacks the line"),
    ],
)
def test_the_better_reading_is(poppler: str, pdfium: str, reference: str) -> None:
    assert better(poppler, pdfium) == reference


def test_numbers_of_glyphs_stay_the_reading_that_sets_a_file_aside() -> None:
    assert is_coded(better("\x12 ab cd ef gh ij kl", PROSE))
