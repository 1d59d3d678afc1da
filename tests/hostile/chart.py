"""The chart's defaults for one process: its settings and its memory limit."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

_CHART: Final = Path(__file__).parents[2] / "deploy/helm/memloop"
_LIMIT: Final = re.compile(r'"(MEMLOOP_\w+)" \(\w+ \$limits\.(\w+)')
_WITH_LIMITS: Final = {"gateway", "worker"}
_UNITS: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@dataclass(frozen=True)
class Defaults:
    """Settings as environment variables, and the container's memory limit."""

    settings: dict[str, str]
    memory_bytes: int


def defaults_of(component: str) -> Defaults:
    """Read ``gateway``, ``worker`` or ``memoryStore`` from the chart's values."""
    whole: dict[str, Any] = yaml.safe_load((_CHART / "values.yaml").read_text())
    values = whole[component]
    limits = _limits(whole["limits"]) if component in _WITH_LIMITS else {}
    own = {name: str(value) for name, value in values["env"].items()}
    return Defaults(limits | own, _bytes(values["resources"]))


def _limits(limits: dict[str, Any]) -> dict[str, str]:
    """The settings that the chart's template makes of its limits."""
    found = _LIMIT.findall((_CHART / "templates/_limits.tpl").read_text())
    return {setting: str(limits[name]) for setting, name in found}


def _bytes(resources: dict[str, Any]) -> int:
    found = re.fullmatch(r"(\d+)(Ki|Mi|Gi)", resources["limits"]["memory"])
    assert found is not None
    return int(found[1]) * _UNITS[found[2]]
