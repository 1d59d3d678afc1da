"""Every expression of every dashboard and every recording rule, asked of a real Prometheus over the running stack."""

import math
import shutil
import time
import urllib.error
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from live_load import Load
from live_stack import JOBS, Prometheus, local_stack, prometheus, suspended, trainer_exporter

from deploy.observability.expressions import dashboard_expressions, recording_rules, runbook_queries

WINDOW = "30s"
DEADLINE_S = 600.0
QUIET = (
    "ProcessDown",
    "WorkerAbsent",
    "RedisUnreachable",
    "VectorsUnreachable",
    "StoreUnreachable",
    "EngineUnreachable",
    "EngineDown",
    "CircuitOpen",
    "RedisMemoryNearLimit",
    "RedisNotDurable",
    "StoreFlushFailing",
)
"""What neither a slow machine nor the load's own failures may raise."""


@dataclass(frozen=True)
class Watched:
    """The stack under load, and the Prometheus that scrapes it."""

    prometheus: Prometheus
    store_port: int

    def eventually(self, expr: str) -> bool:
        """Whether the expression has a number above zero within the deadline."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            if any(value > 0 for value in self.prometheus.values(expr)):
                return True
            time.sleep(1)
        return False


@pytest.fixture(scope="module")
def live(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Everything real, the tiny model's vLLM included."""
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
            yield Watched(server, targets["memory-store"])
    assert {status for path, status in load.statuses if path == "/v1/long-read"} >= {200, 202}, load.statuses


@pytest.fixture(scope="module")
def watched(live: Watched) -> Prometheus:
    return live.prometheus


def test_every_expression_returns_a_number(watched: Prometheus, root: Path) -> None:
    wanted = {rule["record"]: rule["record"] for rule in recording_rules(root)}
    for board, expr in dashboard_expressions(root):
        wanted[f"{board}: {expr}"] = expr.replace("$__rate_interval", WINDOW).replace("$namespace", ".*")
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


@pytest.mark.parametrize(
    "failed",
    [
        'upstream_errors_total{job="gateway"}',
        'longread_ended_total{outcome=~"failed|refused"}',
        'longread_webhooks_total{outcome="failed"}',
    ],
)
def test_what_fails_under_the_load_is_counted(live: Watched, failed: str) -> None:
    assert live.eventually(f"sum({failed})")


def test_a_stack_that_is_well_raises_none_of_these_alerts(live: Watched) -> None:
    raised = f'ALERTS{{alertname=~"{"|".join(QUIET)}"}}'
    assert live.eventually(f"absent({raised}) and on() min(dependency_up) > 0"), live.prometheus.get(
        "query", query=raised
    )


def test_a_store_that_hangs_raises_its_alert(live: Watched) -> None:
    """Chats go on, without their memory."""
    failed = "sum(memory_recall_failed_total)"
    assert live.eventually("count(memory_recall_failed_total)")
    (before,) = live.prometheus.values(failed)
    with suspended("memory_store.main", live.store_port):
        assert live.eventually(f"{failed} > {before}")
        assert live.eventually('ALERTS{alertname="RecallFailing"}')
    assert live.eventually('sum(rate(gateway_request_seconds_count{route="/v1/chat/completions",code="200"}[30s]))')


def _has_number(server: Prometheus, expr: str) -> bool:
    try:
        return any(not math.isnan(value) for value in server.values(expr))
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{expr}: {error.read().decode()}") from error
