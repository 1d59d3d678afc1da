"""The documentation site: every page has its place in the navigation, every route its place in the reference."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from apps.docs import metrics_page, settings_page
from apps.docs.navigation import entries, with_folders
from apps.docs.routes_page import routes_page
from gateway.main import build_app
from gateway.settings import GatewaySettings
from tests.docs.markdown import anchors, links

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILT = {"reference/http-api.md"}
"""Pages that the build makes."""


@cache
def openapi() -> Mapping[str, Any]:
    return build_app(GatewaySettings()).openapi()


def test_every_page_has_one_place_in_the_navigation() -> None:
    pages = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
    nav = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader=yaml.BaseLoader)["nav"]  # knows no tag
    placed = Counter(entries(with_folders(nav, pages)))
    assert placed == Counter({*pages, *BUILT})


def test_a_folder_or_a_pattern_stands_for_the_pages_that_no_other_entry_names() -> None:
    nav = ["index.md", {"How-to": [{"First": "how-to/start.md"}, "how-to/"]}, "old*.md"]
    pages = ["how-to/README.md", "how-to/a.md", "how-to/start.md", "index.md", "old-one.md"]
    how_to = [{"First": "how-to/start.md"}, "how-to/README.md", "how-to/a.md"]
    assert with_folders(nav, pages) == ["index.md", {"How-to": how_to}, "old-one.md"]


def test_the_reference_has_every_route_and_its_links_resolve() -> None:
    page = routes_page(openapi())
    wanted = {f"{method.upper()} {path}" for path, routes in openapi()["paths"].items() for method in routes}
    assert set(re.findall(r"^### `(.+)`$", page, re.MULTILINE)) == wanted
    assert {link for link in links(page) if link.startswith("#") and link[1:] not in anchors(page)} == set()


def test_the_reference_of_metrics_is_what_the_code_says() -> None:
    assert metrics_page.PAGE.read_text("utf-8") == metrics_page.page(), "run make docs-reference"


def test_the_page_of_settings_is_what_the_code_says_and_describes_each() -> None:
    page = settings_page.PAGE.read_text("utf-8")
    assert settings_page.page(page) == page, "run make docs-reference"
    assert re.findall(r"^\| `(\w+)` \|.*\|  \|$", page, re.MULTILINE) == [], "say what it means"


def test_a_new_setting_gets_a_row_and_keeps_the_meanings_of_the_others() -> None:
    page = settings_page.PAGE.read_text("utf-8")
    row = re.search(r"^\| `MEMLOOP_DRAIN_S` .*\n", page, re.MULTILINE)
    assert row is not None
    without = settings_page.page(page.replace(row[0], ""))
    assert re.findall(r"^\| `MEMLOOP_DRAIN_S` .*", without, re.MULTILINE) == [
        "| `MEMLOOP_DRAIN_S` | number, at least 0 | `0` | seconds |  |"
    ]
    assert len(without.splitlines()) == len(page.splitlines())
