"""The chart's defaults for one process: its settings and its memory limit."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

_VALUES: Final = Path(__file__).parents[2] / "deploy/helm/memloop/values.yaml"
_UNITS: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@dataclass(frozen=True)
class Defaults:
    """Settings as environment variables, and the container's memory limit."""

    settings: dict[str, str]
    memory_bytes: int


def defaults_of(component: str) -> Defaults:
    """Read ``gateway``, ``worker`` or ``memoryStore`` from the chart's values."""
    values: dict[str, Any] = yaml.safe_load(_VALUES.read_text())[component]
    return Defaults({name: str(value) for name, value in values["env"].items()}, _bytes(values["resources"]))


def _bytes(resources: dict[str, Any]) -> int:
    found = re.fullmatch(r"(\d+)(Ki|Mi|Gi)", resources["limits"]["memory"])
    assert found is not None
    return int(found[1]) * _UNITS[found[2]]
