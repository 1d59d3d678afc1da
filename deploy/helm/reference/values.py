"""The schema and the page of the chart's values, from the comments and defaults of ``values.yaml``.

A value's documentation is the comment right above it. ``@schema {…}`` in that comment is JSON Schema (as YAML) on top
of the type that the default has; a mapping without it is an object of exactly the keys that it lists.
"""

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import yaml

from deploy.helm.reference.value_types import DEFINITIONS

ROOT = Path(__file__).parents[3]
VALUES = ROOT / "deploy/helm/memloop/values.yaml"
SCHEMA = ROOT / "deploy/helm/memloop/values.schema.json"
PAGE = ROOT / "docs/deploy/values.md"
JsonSchema: TypeAlias = dict[str, Any]
_MARK = "@schema "
_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "seq": "array", "map": "object"}
_SHARED = {
    "annotations": "Annotations of the object.",
    "enabled": "Creates the object.",
    "extraEnv": "More variables, in Kubernetes' form: a proxy, a region, a key from another Secret.",
    "extraVolumeMounts": "More mounts of the container, in Kubernetes' form.",
    "extraVolumes": "More volumes, in Kubernetes' form.",
    "gpuResource": "Name of the GPU resource of your device plugin.",
    "initContainers": "Init containers, in Kubernetes' form, confined as ours are.",
    "maxReplicas": "Upper limit of replicas.",
    "minReplicas": "Lower limit of replicas.",
    "nodeSelector": "Labels of the nodes to run on.",
    "podAnnotations": "Annotations of the pods.",
    "podLabels": "Labels of the pods, beside the chart's.",
    "priorityClassName": "Name of a PriorityClass.",
    "resources": "Requests and limits of one pod. There is no CPU limit unless you set one.",
    "runAsGroup": "Group of the processes.",
    "runAsUser": "User of the processes.",
    "serviceAccountAnnotations": "Annotations of the service account, such as a cloud role.",
    "size": "Size of the disk.",
    "tolerations": "Tolerations of node taints.",
}
"""Documentation of values with these names and no comment of their own."""
_INTRO = """# The chart's values

`python -m deploy.helm.reference` generates this page from `deploy/helm/memloop/values.yaml`. Edit that file.
Helm refuses a value that is not in these tables or has another form.
"""


@dataclass(frozen=True, slots=True)
class Value:
    """One key of ``values.yaml``: its dotted path, documentation, schema on top of the default's, and its default."""

    path: str
    text: str
    extra: JsonSchema
    node: yaml.Node

    @property
    def group(self) -> yaml.MappingNode | None:
        """The mapping, of one that only holds other values."""
        return self.node if isinstance(self.node, yaml.MappingNode) and self.node.value and not self.extra else None

    @property
    def default(self) -> object:
        """As YAML reads it."""
        text = yaml.serialize(self.node)  # pyright: ignore[reportUnknownMemberType] - untyped
        return yaml.safe_load(text)

    def schema(self) -> JsonSchema:
        """Of a value that is no group."""
        return self.extra if "$ref" in self.extra else {"type": _TYPES[self.node.tag.rsplit(":", 1)[-1]], **self.extra}


def read(text: str) -> tuple[yaml.MappingNode, list[str]]:
    """The whole of ``values.yaml``, and its lines."""
    node = cast(object, yaml.compose(text, yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType] - untyped
    if not isinstance(node, yaml.MappingNode):
        raise TypeError("values.yaml is no mapping")
    return node, text.splitlines()


def children(node: yaml.MappingNode, lines: list[str], above: str = "") -> Generator[Value]:
    """The values right below a mapping, in order."""
    for key, node_below in node.value:
        comment = list(_comment(lines, key.start_mark.line))
        schemas = [line.removeprefix(_MARK) for line in comment if line.startswith(_MARK)]
        text = " ".join(line for line in comment if not line.startswith(_MARK)) or _SHARED.get(key.value, "")
        yield Value(f"{above}{key.value}", text, yaml.safe_load(schemas[0]) if schemas else {}, node_below)


def _comment(lines: list[str], line: int) -> Generator[str]:
    """The comment that ends right above a line, at the same depth."""
    start = line
    while start and lines[start - 1].strip().startswith("#"):
        start -= 1
    yield from (text.strip().removeprefix("#").strip() for text in lines[start:line])


def object_schema(node: yaml.MappingNode, lines: list[str]) -> JsonSchema:
    """Exactly the keys of the mapping, all of them: Helm fills in those that a user leaves out."""
    found: JsonSchema = {}
    for value in children(node, lines):
        schema = object_schema(value.group, lines) if value.group else value.schema()
        found[value.path] = ({"description": value.text} if value.text else {}) | schema
    return {"type": "object", "additionalProperties": False, "required": list(found), "properties": found}


def chart_schema(text: str) -> JsonSchema:
    """The whole schema. An entry of ``inference.models`` may hold all that ``inference.defaults`` holds."""
    root = object_schema(*read(text))
    overrides = _partial(root["properties"]["inference"]["properties"]["defaults"])
    named = {**DEFINITIONS["model"]["properties"], **overrides["properties"]}
    model = {**DEFINITIONS["model"], "properties": named}
    root["properties"]["global"] = {
        "type": "object",
        "description": "Helm gives it to a chart that is part of another.",
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": {**DEFINITIONS, "model": model}}


def _partial(schema: JsonSchema) -> JsonSchema:
    """The same object with nothing required."""
    below = {name: _partial(value) if "properties" in value else value for name, value in schema["properties"].items()}
    return {key: value for key, value in schema.items() if key != "required"} | {"properties": below}


def page(text: str) -> str:
    """The reference: a section for each value of the first level, a table of those below."""
    node, lines = read(text)
    sections: list[str] = [_INTRO]
    for top in children(node, lines):
        rows = [_row(value) for value in leaves(top, lines)]
        head = f"## `{top.path}`\n\n{top.text}\n" if top.text else f"## `{top.path}`\n"
        sections.append("\n".join([head, "| Value | Default | |", "|---|---|---|", *rows, ""]))
    return "\n".join(sections)


def leaves(value: Value, lines: list[str]) -> Generator[Value]:
    """The values below one, and the groups that say something."""
    if value.group is None:
        yield value
        return
    if "." in value.path and value.text:
        yield value
    for below in children(value.group, lines, f"{value.path}."):
        yield from leaves(below, lines)


def _row(value: Value) -> str:
    default = "" if value.group else f"`{json.dumps(value.default)}`"
    choices = value.extra.get("enum")
    choice = f"One of {', '.join(f'`{json.dumps(one)}`' for one in choices)}." if choices else ""
    said = " ".join(filter(None, (value.text, choice))).replace("|", "\\|")
    return f"| `{value.path}` | {default} | {said} |"


def outputs() -> dict[Path, str]:
    """What the generated files must hold."""
    text = VALUES.read_text()
    return {SCHEMA: json.dumps(chart_schema(text), indent=2, ensure_ascii=False) + "\n", PAGE: page(text)}
