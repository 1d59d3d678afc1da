"""Every block of code in the README and the tutorials runs, and prints what the page shows."""

from pathlib import Path
from typing import Any

import pytest

from tests.docs.running import ROOT, printed_by
from tests.docs.snippets import Snippet, fits, snippets
from tests.gateway.whole import Whole

PAGES = {
    page: list(snippets(page.read_text("utf-8")))
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/tutorials/*.md")))
}


@pytest.mark.parametrize("page", [page for page, found in PAGES.items() if found], ids=lambda page: page.stem)
async def test_a_pages_code_prints_what_the_page_shows(page: Path, it: Whole, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    for snippet in PAGES[page]:
        printed = await printed_by(snippet, url=it.gateway.url, folder=tmp_path, names=names)
        place = f"{page.name}:{snippet.line}"
        assert snippet.output is None or fits(snippet.output, printed), f"{place} printed:\n{printed}"


def test_a_page_is_taken_apart_into_what_is_run_and_what_it_prints() -> None:
    page = "# T\n\n```sh\nmake up\n```\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\nText.\n\n```bash\ntrue\n```\n"
    assert list(snippets(page)) == [Snippet("python", "print(1)\n", 7, "1\n"), Snippet("bash", "true\n", 17)]


@pytest.mark.parametrize(
    ("shown", "printed", "fit"),
    [
        ("a\nb", "a\nb\n", True),
        ("a …", "a mem_1", True),
        ("a …", "b", False),
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("a (b)", "a (b)  \n", True),
        ("a", "a\nb", False),
    ],
)
def test_an_ellipsis_stands_for_any_text(shown: str, printed: str, fit: bool) -> None:
    assert fits(shown, printed) is fit
