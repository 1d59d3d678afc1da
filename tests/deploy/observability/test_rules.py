"""Rules and alerts under promtool; the dashboards' files beside their code."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.observability.expressions import GENERATED


def promtool(*arguments: object) -> str:
    """What it prints; fails the test when it fails."""
    if shutil.which("promtool") is None:
        pytest.skip("there is no promtool on the PATH (Debian: apt-get install prometheus)")
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["rules.yml", "alerts.yml"])
def test_promtool_accepts_the_rules(root: Path, name: str) -> None:
    assert "SUCCESS" in promtool("check", "rules", root / GENERATED / name)


def test_promtool_accepts_the_scrape_configuration(root: Path) -> None:
    assert "SUCCESS" in promtool("check", "config", "--syntax-only", root / "deploy/observability/prometheus.yml")


@pytest.mark.parametrize("group", ["objectives", "processes", "dependencies", "engine", "jobs", "memory", "trainer"])
def test_alerts_fire_when_they_should_and_only_then(root: Path, group: str) -> None:
    promtool("test", "rules", root / f"deploy/observability/rule_tests/{group}.yml")


def test_the_dashboards_are_what_their_code_makes(root: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "deploy.observability.dashboards", tmp_path], cwd=root, check=True)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text() for path in (root / GENERATED / "dashboards").iterdir()}
    assert made == kept, "run: make dashboards"
