"""The chart as Helm renders it, and what is asked of the objects again and again."""

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import helm_python as helm
import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "deploy/helm/memloop"
FILES = {path.name.removesuffix("-values.yaml"): path for path in CHART.glob("*/*-values.yaml")}
PRESETS = sorted(name for name, path in FILES.items() if path.parent.name == "presets")
"""Files that a user's own values follow."""
Values: TypeAlias = dict[str, Any]
Object: TypeAlias = dict[str, Any]
_WITH_PODS = {"Deployment", "StatefulSet", "Job"}


def open_chart() -> helm.Chart:
    return helm.Chart.load(str(CHART))


def values_of(name: str) -> Values:
    """A file of values; a preset with the required ones after it."""
    values = yaml.safe_load(FILES[name].read_text())
    return merged(values, values_of("minimal")) if name in PRESETS else values


def merged(base: Values, over: Values) -> Values:
    """As Helm merges two files of values."""
    both = {key: merged(base[key], over[key]) for key in base.keys() & over.keys() if isinstance(over[key], dict)}
    return base | over | both


def changed(values: Values, path: str, new: object) -> Values:
    """The values with one more, at a dotted path."""
    result = copy.deepcopy(values)
    node = result
    *above, last = path.split(".")
    for key in above:
        node = node.setdefault(key, {})
    node[last] = new
    return result


class Rendered:
    """A chart that renders into a release ``demo`` in the namespace ``memloop``."""

    def __init__(self, chart: helm.Chart) -> None:
        self.chart = chart

    def files(self, values: Values, *, name: str = "demo") -> Mapping[str, str]:
        """By the template's path. Raises helm.HelmError."""
        return self.chart.render(values, name=name, namespace="memloop")

    def objects(self, values: Values, *, name: str = "demo") -> "Objects":
        texts = [text for path, text in self.files(values, name=name).items() if path.endswith(".yaml")]
        return Objects([found for text in texts for found in yaml.load_all(text, yaml.CSafeLoader) if found])


class Objects(list[Object]):
    """What one release makes."""

    def named(self, kind: str, name: str) -> Object:
        [found] = [one for one in self if one["kind"] == kind and one["metadata"]["name"] == name]
        return found

    def of(self, kind: str) -> list[Object]:
        return [one for one in self if one["kind"] == kind]

    def pods(self) -> Iterator[tuple[str, Object]]:
        """Name of the owner, and pod (metadata and spec), of everything that runs."""
        for one in self:
            name = one["metadata"]["name"]
            if one["kind"] in _WITH_PODS:
                yield name, one["spec"]["template"]
            elif one["kind"] == "CronJob":
                yield name, one["spec"]["jobTemplate"]["spec"]["template"]
            elif one["kind"] == "Pod":
                yield name, one
            elif one["kind"] == "RayJob":
                yield from ((f"{name}-{group}", pod) for group, pod in ray_pods(one))

    def pod(self, name: str) -> Object:
        return dict(self.pods())[name]

    def settings(self, name: str) -> dict[str, str | None]:
        """The environment of a pod's container: from its ConfigMap and its own; None is from a Secret."""
        container = self.pod(name)["spec"]["containers"][0]
        maps = [source["configMapRef"]["name"] for source in container.get("envFrom", ()) if "configMapRef" in source]
        found: dict[str, str | None] = {}
        for config in maps:
            found |= self.named("ConfigMap", config)["data"]
        return found | {entry["name"]: entry.get("value") for entry in container.get("env", ())}


def ray_pods(job: Object) -> Iterator[tuple[str, Object]]:
    """The pods of a RayJob's own cluster, by group."""
    cluster = job["spec"].get("rayClusterSpec")
    if cluster is not None:
        yield "head", cluster["headGroupSpec"]["template"]
        yield from ((group["groupName"], group["template"]) for group in cluster["workerGroupSpecs"])
