"""Every alert is tested and has a runbook; every metric that is asked for is one that a process exposes."""

import asyncio
import importlib.util
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from deploy.observability.expressions import (
    GENERATED,
    alerts,
    confined,
    dashboard_expressions,
    metrics_of,
    recording_rules,
    runbook_queries,
)
from gateway.metrics import Metrics as GatewayMetrics
from gateway.settings import WorkerSettings
from inference.metrics import LauncherMetrics
from inference.settings import LauncherSettings
from memloop.chores import alongside
from memloop_service import ServiceSettings, create_app, new_registry, watch_disk
from memloop_service.metrics import watch_dependencies, watch_loop
from memory_store.metrics import Metrics as StoreMetrics
from memory_store.settings import Settings as StoreSettings
from trainer.metrics_exporter import RunLog

ROOT = Path(__file__).parents[2]
PROMETHEUS_OWN = {"up", "ALERTS"}
ALERTS = alerts(ROOT)
NAMES = sorted({alert["alert"] for alert in ALERTS})


def rule_tests() -> list[dict[str, Any]]:
    """Every expectation of the promtool tests."""
    files = (yaml.safe_load(path.read_text()) for path in (ROOT / "deploy/observability/rule_tests").glob("*.yml"))
    return [check for file in files for test in file["tests"] for check in test["alert_rule_test"]]


@pytest.mark.parametrize(("name", "severity"), [(alert["alert"], alert["labels"]["severity"]) for alert in ALERTS])
def test_an_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not(name: str, severity: str) -> None:
    fired = [
        severity in {expected["exp_labels"]["severity"] for expected in check["exp_alerts"]}
        for check in rule_tests()
        if check["alertname"] == name
    ]
    assert set(fired) == {True, False}


@pytest.mark.parametrize("name", NAMES)
def test_an_alert_names_its_runbook(name: str) -> None:
    links = {alert["annotations"]["runbook_url"] for alert in ALERTS if alert["alert"] == name}
    assert links == {f"docs/runbooks/{name}.md"}
    assert (ROOT / links.pop()).is_file()


def test_a_runbook_belongs_to_an_alert() -> None:
    runbooks = {path.stem for path in (ROOT / "docs/runbooks").glob("*.md")} - {"README"}
    assert runbooks == set(NAMES)


@pytest.mark.parametrize("name", [*NAMES, "README"])
def test_a_runbook_names_settings_services_and_files_that_exist(name: str) -> None:
    text = (ROOT / f"docs/runbooks/{name}.md").read_text()
    assert set(re.findall(r"MEMLOOP_[A-Z_]+", text)) <= settings()
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert set(re.findall(r"docker compose .*?\b([a-z-]+) (?:sh|python|redis-cli) ", text)) <= set(services)
    links = set(re.findall(r"\]\(([^)#]+)", text))
    assert {link for link in links if not (ROOT / "docs/runbooks" / link).exists()} == set()


async def test_every_metric_that_is_asked_for_is_exposed() -> None:
    asked: dict[str, str] = {}
    for source, expr in _all_expressions():
        asked.update(dict.fromkeys(metrics_of(expr), f"{source}: {expr}"))
    known = await exposed() | {rule["record"] for rule in recording_rules(ROOT)} | PROMETHEUS_OWN
    assert {name: where for name, where in asked.items() if name not in known} == {}


def test_the_names_of_an_expression_are_found() -> None:
    expr = 'histogram_quantile(0.9, sum by (job, le) (rate(a_bucket{x="b"}[5m]))) / vllm:c_total > 3 and max(d)'
    assert metrics_of(expr) == {"a_bucket", "vllm:c_total", "d"}


@pytest.mark.parametrize(
    ("expr", "scoped"),
    [
        ("up", "up{n}"),
        (
            'sum by (job_name, le) (rate(a_bucket{x="b_c"}[5m]))',
            'sum by (job_name, le) (rate(a_bucket{n, x="b_c"}[5m]))',
        ),
        ("rate(a_total{}[$__rate_interval]) / on (pod) b:c or vector(0)", None),
    ],
    ids=["a name", "a grouping, a label and a range", "no labels, two metrics, a function"],
)
def test_a_matcher_is_added_to_every_selector_and_to_nothing_else(expr: str, scoped: str | None) -> None:
    expected = scoped or "rate(a_total{n}[$__rate_interval]) / on (pod) b:c{n} or vector(0)"
    assert confined(expr, "n") == expected


def test_every_dashboard_can_be_confined_to_a_namespace() -> None:
    for path in (ROOT / GENERATED / "dashboards").glob("*.json"):
        names = [variable["name"] for variable in json.loads(path.read_text())["templating"]["list"]]
        assert names == ["datasource", "namespace"]
    for name, expr in dashboard_expressions(ROOT):
        assert confined(expr, "x").count("{") == expr.count('namespace=~"$namespace"'), f"{name}: {expr}"


def _all_expressions() -> Iterable[tuple[str, str]]:
    yield from dashboard_expressions(ROOT)
    for rule in (*recording_rules(ROOT), *ALERTS):
        yield rule.get("record") or rule["alert"], rule["expr"]
    yield from runbook_queries(ROOT)


def settings() -> set[str]:
    """The variables that the processes and the command line read."""
    fields = [name for kind in (WorkerSettings, StoreSettings, LauncherSettings) for name in kind.model_fields]
    return {f"MEMLOOP_{name.upper()}" for name in fields}


async def exposed() -> set[str]:
    """The names of the samples of all processes, and of vLLM's metrics."""
    gateway, store, launcher = new_registry(), new_registry(), new_registry()
    GatewayMetrics(gateway)
    StoreMetrics(store)
    LauncherMetrics(launcher)
    create_app("any", settings=ServiceSettings(), registry=gateway)
    watch_disk(gateway, ROOT)
    async with alongside(watch_loop(store), watch_dependencies(store, {})):
        await asyncio.sleep(0)
        return _trainer() | _samples(gateway) | _samples(store) | _samples(launcher) | _vllm()


def _trainer() -> set[str]:
    return {family.name for family in RunLog(ROOT / "tests/trainer/golden/verl_steps.jsonl").collect()}


def _samples(registry: CollectorRegistry) -> set[str]:
    names: set[str] = set()
    for family in registry.collect():
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
        names |= {family.name + suffix for suffix in suffixes}
    return names


def _vllm() -> set[str]:
    """Names in the source of the engine's metrics: to import it would load the whole engine."""
    spec = importlib.util.find_spec("vllm")
    assert spec is not None
    assert spec.origin is not None
    source = (Path(spec.origin).parent / "v1/metrics/loggers.py").read_text()
    names = set(re.findall(r'"(vllm:\w+)"', source))
    return {name + suffix for name in names for suffix in ("", "_total", "_bucket", "_sum", "_count")}
