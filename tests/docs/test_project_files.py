"""One version, one licence, and the versions and licences of others that the pages name."""

import json
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from memloop_cli.main import app

ROOT = Path(__file__).parents[2]
PARTS = sorted(path for path in ROOT.glob("*/**/pyproject.toml") if not path.relative_to(ROOT).parts[0].startswith("."))
LICENCES = runpy.run_path(str(ROOT / "requirements/licences.py"))


def of_part(path: Path) -> dict[str, str]:
    return tomllib.loads(path.read_text())["project"]


VERSION = of_part(ROOT / "packages/memloop/pyproject.toml")["version"]


@pytest.mark.parametrize("path", PARTS, ids=lambda path: path.parent.name)
def test_a_part_has_the_version_and_the_licence_of_all(path: Path) -> None:
    project = of_part(path)
    assert (project["version"], project["license"]) == (VERSION, "Apache-2.0")


def test_the_chart_and_the_citation_name_that_version() -> None:
    chart = yaml.safe_load((ROOT / "deploy/helm/memloop/Chart.yaml").read_text())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (chart["appVersion"], citation["version"], citation["license"]) == (VERSION, VERSION, "Apache-2.0")


def test_the_command_line_prints_that_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"{VERSION}\n")


def test_the_page_on_coding_agents_names_the_versions_that_its_suite_installs() -> None:
    installed = json.loads((ROOT / "tests/coding_agents/package.json").read_text())["dependencies"]
    claude_code, codex = installed["@anthropic-ai/claude-code"], installed["@openai/codex"]
    page = (ROOT / "docs/how-to/coding-agents.md").read_text()
    assert f"Claude Code {claude_code} and Codex {codex}, the real programs" in page


def test_the_page_of_licences_lists_what_the_lock_installs() -> None:
    page = (ROOT / "docs/third-party-licences.md").read_text()
    assert page == LICENCES["page"]()


def test_the_licences_of_others_are_permissive_or_exceptions_with_a_reason() -> None:
    assert LICENCES["refused"]() == []
