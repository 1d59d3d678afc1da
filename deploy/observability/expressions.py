"""What the dashboards, rules and alerts of the repository ask, and which metrics that takes."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast

import yaml

GENERATED = Path("deploy/helm/memloop/observability")
"""In the repository; the chart ships it, and the compose stack mounts it."""
Rule: TypeAlias = dict[str, Any]
_NOT_A_METRIC = re.compile(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on|ignoring)\s*\([^)]*\)')
_SELECTOR = re.compile(
    r'"[^"]*"|\[[^\]]*\]|\b(?:by|without|on|ignoring)\s*\([^)]*\)|([a-zA-Z_:][\w:]*)(?![\w:])(?:\{([^}]*)\})?(?!\s*(?:\(|by\b|without\b))'
)
_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_QUERIES = re.compile(r"^```promql\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_WORDS = {"and", "or", "unless", "bool"}


def dashboard_expressions(root: Path) -> Iterator[tuple[str, str]]:
    """The name of each dashboard with each of its expressions."""
    for path in sorted((root / GENERATED / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", ()):
                yield path.stem, target["expr"]


def recording_rules(root: Path) -> list[Rule]:
    """The rules that make series."""
    return _rules(root / GENERATED / "rules.yml")


def alerts(root: Path) -> list[Rule]:
    """The alerts; one name may stand twice, with two severities."""
    return _rules(root / GENERATED / "alerts.yml")


def runbook_queries(root: Path) -> Iterator[tuple[str, str]]:
    """The name of each runbook with each line of its ``promql`` blocks."""
    for path in sorted((root / "docs/runbooks").glob("*.md")):
        for block in _QUERIES.findall(path.read_text()):
            yield from ((path.stem, line) for line in block.splitlines())


def metrics_of(expr: str) -> set[str]:
    """The metrics that an expression names, functions and labels left out."""
    bare = _NOT_A_METRIC.sub(" ", expr)
    found = [match for match in _NAME.finditer(bare) if not bare[match.end() :].lstrip().startswith("(")]
    return {match.group() for match in found} - _WORDS


def confined(expr: str, matcher: str) -> str:
    """The expression with one more matcher in each of its selectors."""

    def added(found: re.Match[str]) -> str:
        name, labels = found.groups()
        if name is None or name in _WORDS:
            return found.group()
        return f"{name}{{{', '.join(filter(None, (matcher, labels)))}}}"

    return _SELECTOR.sub(added, expr)


def _rules(path: Path) -> list[Rule]:
    groups = cast("list[dict[str, list[Rule]]]", yaml.safe_load(path.read_text())["groups"])
    return [rule for group in groups for rule in group["rules"]]
