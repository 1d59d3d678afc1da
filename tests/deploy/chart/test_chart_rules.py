"""The rules of a release: they see its own namespace, and promtool accepts them."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.chart.chart_release import CHART, Rendered, values_of

SELECTOR = re.compile(r"([A-Za-z_][\w:]*)\{([^}]*)\}")
GROUPED = re.compile(r"\b(?:by|on|without|ignoring)\s*\([^)]*\)")
NAME = re.compile(r"[A-Za-z_][\w:]*")
WORDS = {"and", "or", "unless", "bool"}
TWO_TEAMS = """
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - { series: 'up{job="gateway",namespace="memloop",instance="ours"}', values: "1x30" }
      - { series: 'up{job="gateway",namespace="shop",instance="theirs"}', values: "0x30" }
      - { series: 'up{job="memory-store",namespace="shop",instance="theirs"}', values: "1x30" }
      - series: 'gateway_request_seconds_count{route="/v1/chat/completions",code="200",namespace="memloop"}'
        values: 0+100x30
      - series: 'gateway_request_seconds_count{route="/v1/chat/completions",code="500",namespace="shop"}'
        values: 0+100x30
    alert_rule_test:
      - { eval_time: 20m, alertname: ProcessDown, exp_alerts: [] }
      - { eval_time: 20m, alertname: GatewayAbsent, exp_alerts: [] }
      - eval_time: 20m
        alertname: StoreAbsent
        exp_alerts:
          - exp_labels: { severity: page, job: memory-store, namespace: memloop }
            exp_annotations:
              summary: "Prometheus scrapes no memory store; chats run without memories."
              runbook_url: docs/runbooks/StoreAbsent.md
    promql_expr_test:
      - expr: memloop:chat_errors:ratio_rate5m
        eval_time: 20m
        exp_samples: [{ labels: 'memloop:chat_errors:ratio_rate5m{namespace="memloop"}', value: 0 }]
"""


@pytest.fixture(scope="module")
def groups(chart: Rendered) -> list[dict[str, Any]]:
    found = chart.objects(values_of("keda")).of("PrometheusRule")
    return [group for one in found for group in one["spec"]["groups"]]


def rules_of(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [rule for group in groups for rule in group["rules"]]


def bare_names(expr: str) -> set[str]:
    """Words of an expression that are neither selectors with braces, functions, operators nor labels of a grouping."""
    rest = GROUPED.sub(" ", re.sub(r"\[[^]]*\]", " ", SELECTOR.sub(" ", expr)))
    found = [word for word in NAME.finditer(rest) if not rest[word.end() :].lstrip().startswith("(")]
    return {word.group() for word in found} - WORDS


def test_every_selector_of_every_rule_names_the_namespace(groups: list[dict[str, Any]]) -> None:
    for rule in rules_of(groups):
        assert bare_names(rule["expr"]) == set(), rule["expr"]
        selectors = SELECTOR.findall(rule["expr"])
        assert selectors
        assert [name for name, labels in selectors if not labels.startswith('namespace="memloop"')] == []


def test_every_series_and_alert_carries_the_namespace(groups: list[dict[str, Any]]) -> None:
    assert {rule["labels"]["namespace"] for rule in rules_of(groups)} == {"memloop"}


def test_nothing_else_of_a_rule_is_changed(groups: list[dict[str, Any]]) -> None:
    files = sorted((CHART / "observability").glob("*.yml"))
    written = [rule for path in files for rule in rules_of(yaml.safe_load(path.read_text())["groups"])]
    for made, source in zip(rules_of(groups), written, strict=True):
        assert re.sub(r'namespace="memloop",?', "", made["expr"]).replace("{}", "") == source["expr"]
        assert {key: made.get(key) for key in ("alert", "record", "for")} == {
            key: source.get(key) for key in ("alert", "record", "for")
        }


def promtool(folder: Path, *arguments: str) -> str:
    if shutil.which("promtool") is None:
        pytest.skip("there is no promtool on the PATH (Debian: apt-get install prometheus)")
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_another_teams_gateway_raises_and_hides_no_alert(groups: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": groups}))
    (tmp_path / "test.yml").write_text(TWO_TEAMS)
    assert "SUCCESS" in promtool(tmp_path, "check", "rules", "rules.yml")
    promtool(tmp_path, "test", "rules", "test.yml")
