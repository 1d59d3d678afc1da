"""The documentation refers only to things that exist: pages, anchors, commands, settings and their
defaults."""

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from apps.docs import settings_page
from gateway.settings import WorkerSettings
from inference.settings import LauncherSettings
from memory_store.settings import Settings as StoreSettings
from tests.docs.markdown import anchors, broken_links, code

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/**/*.md"))
COMPOSE = ROOT / "docker-compose.yml"
READS_VARIABLES = (
    *(ROOT / "apps").glob("**/*.py"),
    *(ROOT / "deploy").glob("*.py"),
    *(ROOT / "trainer/trainer/promotion").glob("*.py"),
)
NAME = re.compile(r"MEMLOOP_[A-Z0-9_]*")
ENGINES = {"sglang.launch_server"}
"""Modules of engines that users install themselves."""


SETTINGS = frozenset(
    settings_page.variable(name, field)
    for kind in (WorkerSettings, StoreSettings, LauncherSettings)
    for name, field in kind.model_fields.items()
)


@cache
def known_variables() -> frozenset[str]:
    """Settings of the processes, variables of the command line and the scripts, and those that Compose interpolates."""
    read = {name for path in READS_VARIABLES for name in re.findall(r'"(MEMLOOP_[A-Z_]+)"', path.read_text("utf-8"))}
    return SETTINGS | read | set(re.findall(r"\$\{(MEMLOOP_[A-Z_]+)", COMPOSE.read_text("utf-8")))


def unknown_variables(text: str, known: frozenset[str]) -> set[str]:
    """Names that nothing reads. One that ends with an underscore stands for a family."""
    named = set(NAME.findall(text))
    return {name for name in named if name not in known and not (name.endswith("_") and _is_prefix(name, known))}


def _is_prefix(name: str, known: frozenset[str]) -> bool:
    return any(other.startswith(name) for other in known)


def page_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_relative_links_and_anchors_resolve(page: Path) -> None:
    assert broken_links(page, page.read_text("utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_named_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?<![\w-])make ([a-z][a-z-]*)", code(page.read_text("utf-8"))))
    assert named <= targets


@pytest.mark.parametrize("page", [*PAGES, COMPOSE], ids=page_name)
def test_named_modules_exist(page: Path) -> None:
    named = set(re.findall(r"python3? -m ([a-z][\w.]*\w)", page.read_text("utf-8"))) - ENGINES
    assert {name for name in named if not is_module(name)} == set()


def is_module(name: str) -> bool:
    """Whether ``python -m`` finds it."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("page", [*PAGES, ROOT / ".env.example", COMPOSE], ids=page_name)
def test_named_variables_exist(page: Path) -> None:
    assert unknown_variables(page.read_text("utf-8"), known_variables()) == set()


def test_compose_reads_every_variable_of_the_example() -> None:
    named = set(re.findall(r"^(MEMLOOP_[A-Z_]+)=", (ROOT / ".env.example").read_text("utf-8"), re.MULTILINE))
    assert named - set(re.findall(r"\$\{(MEMLOOP_[A-Z_]+)", COMPOSE.read_text("utf-8"))) == set()


def test_the_page_of_settings_lists_all() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", settings_page.PAGE.read_text("utf-8"), re.MULTILINE)) >= SETTINGS


def test_compose_sets_only_settings() -> None:
    services = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"].values()
    given = {name for service in services for name in service.get("environment", {}) if name.startswith("MEMLOOP_")}
    assert given - SETTINGS == set()


def test_faults_are_found(tmp_path: Path) -> None:
    assert not is_module("gateway.gone")
    assert not is_module("gone.main")
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n## Part two\n")
    text = "[a](page.md) [b](page.md#part-two) [c](gone.md) [d](page.md#gone) [e](https://example.com) `[f](gone.md)`"
    assert broken_links(page, text) == ["gone.md", "page.md#gone"]
    known = frozenset({"MEMLOOP_URL", "MEMLOOP_SERVE_DTYPE"})
    assert unknown_variables("MEMLOOP_URL MEMLOOP_SERVE_… MEMLOOP_SERVO_…", known) == {"MEMLOOP_SERVO_"}
    assert "make gone" in code("text `make gone` text")
    assert "make room" not in code("they make room")
    assert anchors("# mem0's client\n\n## MCP: `/mcp`\n") == {"mem0s-client", "mcp-mcp"}
