"""The pages avoid expressions that a reader stumbles over; the spelling is checked by ``make docs`` (codespell)."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
_SOFTWARE: Final = "gateway|worker|store|engine|launcher|server|process|command|chart|console|Memloop|vLLM|Redis|Qdrant"
RULES: Final = {
    r"\banew\b": "again",
    r"\bnobody's\b": "of no owner",
    r"\bwhat is due\b": "name the thing: expired blobs",
    r"(?<!who )\bknows\b": "has, finds, recognises, supports",
    r"\b(?:hears|tells)\b": "receives, returns, logs",
    r"\b(?:is|are) told\b": "receives",
    rf"\b(?:{_SOFTWARE}) says\b": "returns, logs, prints",
    r"\bspoilt\b": "corrupted",
}
_CODE: Final = re.compile(r"^( *)```.*?^\1```$|^    .*$|`[^`]*`", re.MULTILINE | re.DOTALL)


def faults(text: str) -> list[str]:
    """The expressions of the text outside of its code, with what to write instead."""
    prose = re.sub(r"\s+", " ", _CODE.sub("", text))
    return [
        f"…{prose[max(0, match.start() - 30) : match.end() + 30]}…: {instead}"
        for pattern, instead in RULES.items()
        for match in re.finditer(pattern, prose)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_expression_that_readers_stumble_over(page: Path) -> None:
    assert faults(page.read_text("utf-8")) == []


def test_an_expression_is_found_in_prose_and_not_in_code() -> None:
    assert len(faults("The store knows\nit and tells\nthe worker.")) == 2
    assert faults("`knows`\n\n    tells\n\n```\nanew\n```\n") == []
