"""The documentation site: every page has its place in the navigation, every route its place in the reference."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from apps.docs import metrics_page, settings_page
from apps.docs.navigation import entries, with_folders
from apps.docs.routes_page import routes_page
from gateway.main import build_app
from gateway.settings import GatewaySettings, WorkerSettings
from inference.settings import LauncherSettings
from memory_store.settings import Settings as StoreSettings
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


@pytest.mark.parametrize("reference", [settings_page, metrics_page], ids=["settings", "metrics"])
def test_a_reference_is_what_the_code_says(reference: Any) -> None:
    assert reference.PAGE.read_text("utf-8") == reference.page(), "run make docs-reference"


def test_the_reference_of_settings_has_those_of_every_process_and_of_the_command_line() -> None:
    kinds = (WorkerSettings, StoreSettings, LauncherSettings)
    wanted = {settings_page.variable(name, field) for kind in kinds for name, field in kind.model_fields.items()}
    listed = set(re.findall(r"^\| `(\w+)` \|", settings_page.page(), re.MULTILINE))
    assert wanted | {"MEMLOOP_URL", "MEMLOOP_HOME"} <= listed
