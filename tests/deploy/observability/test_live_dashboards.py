"""Every expression of every dashboard and every recording rule, asked of a real Prometheus over the running stack."""

import math
import shutil
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_load import Load
from live_stack import JOBS, Prometheus, local_stack, prometheus, trainer_exporter

from deploy.observability.expressions import dashboard_expressions, recording_rules, runbook_queries

WINDOW = "30s"
DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def watched(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the stack under load."""
    if shutil.which("prometheus") is None:
        pytest.skip("there is no prometheus on the PATH (Debian: apt-get install prometheus)")
    if not (root / ".venv/bin/memloop").exists():
        pytest.skip("the workspace's environment is not there (make setup)")
    folder = tmp_path_factory.mktemp("live")
    hooks = {
        "MEMLOOP_WEBHOOK_SECRET": "whsec_" + "c2VjcmV0" * 5,
        "MEMLOOP_WEBHOOK_ALLOW_HTTP": "true",
        "MEMLOOP_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
    }
    with local_stack(root, folder, **hooks) as first, trainer_exporter(root, folder) as trainer:
        targets = {job: first + offset for job, offset in JOBS.items()} | {"trainer": trainer}
        load = Load(f"http://127.0.0.1:{first}", webhook="http://127.0.0.1:9/nobody")
        with prometheus(root, folder, targets) as server, load.running():
            yield server
    assert {status for path, status in load.statuses if path == "/v1/long-read"} >= {200, 202}, load.statuses


def test_every_expression_returns_a_number(watched: Prometheus, root: Path) -> None:
    wanted = {rule["record"]: rule["record"] for rule in recording_rules(root)}
    for board, expr in dashboard_expressions(root):
        wanted[f"{board}: {expr}"] = expr.replace("$__rate_interval", WINDOW)
    assert len(wanted) > 100
    deadline = time.monotonic() + DEADLINE_S
    while wanted and time.monotonic() < deadline:
        time.sleep(2)
        wanted = {name: expr for name, expr in wanted.items() if not _has_number(watched, expr)}
    assert not wanted, "no number from:\n" + "\n".join(wanted)


def test_every_query_of_a_runbook_is_understood(watched: Prometheus, root: Path) -> None:
    for _, query in runbook_queries(root):
        watched.values(query)


def test_every_rule_is_evaluated_without_an_error(watched: Prometheus) -> None:
    groups = watched.get("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 60
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}


def test_every_process_is_scraped(watched: Prometheus) -> None:
    targets = watched.get("targets")["activeTargets"]
    assert {target["labels"]["job"]: target["health"] for target in targets} == dict.fromkeys([*JOBS, "trainer"], "up")


def _has_number(server: Prometheus, expr: str) -> bool:
    try:
        return any(not math.isnan(value) for value in server.values(expr))
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{expr}: {error.read().decode()}") from error
