"""values.yaml, its schema, its page and the templates say the same."""

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import helm_python as helm
import pytest

from deploy.helm.reference.values import VALUES, JsonSchema, Value, chart_schema, children, leaves, outputs, read
from tests.deploy.chart.chart_release import CHART, FILES, Rendered, Values, changed, values_of

TEMPLATES = sorted((CHART / "templates").glob("*.*"))


def all_values() -> Iterator[Value]:
    node, lines = read(VALUES.read_text())
    for top in children(node, lines):
        yield from (value for value in leaves(top, lines) if value.group is None)


LEAVES = {value.path: value for value in all_values()}


@pytest.mark.parametrize("path", sorted(outputs()), ids=lambda path: path.name)
def test_the_generated_files_are_up_to_date(path: Path) -> None:
    assert path.read_text() == outputs()[path], "run: python -m deploy.helm.reference"


def test_every_value_is_documented() -> None:
    assert [path for path, value in LEAVES.items() if not value.text] == []


def others(value: Value) -> Iterator[object]:
    """Values of every form that it may take; the schema refuses those that do not fit."""
    default = value.default
    yield from value.extra.get("enum", ())
    if isinstance(default, bool):
        yield from (True, False)
    elif isinstance(default, int):
        yield default + 1
    elif isinstance(default, float):
        yield from (default / 2, default * 2)
    elif isinstance(default, str):
        yield from (
            "other",
            "7Gi",
            "7gb",
            "9m",
            "http://other:1234",
            "redis://other:1234/1",
            "s3://other/x",
            "other/",
            "/other",
            "other=7",
            "7 7 7 7 7",
        )
    elif isinstance(default, list):
        yield from ([*default, "other.example"], [*default, "/other"], [*default, "http://other:1/v1"])
        yield from ([{"name": "other"}], [{"key": "other", "operator": "Exists"}])
        yield [0.5]
        yield [{"id": "other", "engineUrls": ["http://other:1/v1"]}]
        yield from ([{"name": "other", "model": "Other"}], [{"ipBlock": {"cidr": "10.1.2.3/32"}}])
        yield from ([{"name": "other", "mountPath": "/other"}], [{"name": "other", "image": "other/image"}])
        yield [{"peers": [{"ipBlock": {"cidr": "10.1.2.3/32"}}], "ports": [4321]}]
    else:
        held = cast(Values, default)
        yield from (held | {"other": "x"}, held | {"MEMLOOP_OTHER": "x"}, held | {"QDRANT_API_KEY": "x"})
        yield from (held | {"tag": "other"}, held | {"limits": {"memory": "3Gi"}})


@functools.cache
def before(chart: Rendered, name: str) -> tuple[Values, Mapping[str, str]]:
    values = values_of(name)
    return values, chart.files(values)


def shows(chart: Rendered, name: str, path: str, new: object) -> bool:
    """Whether another value at a path changes what a file's values make, or is refused by a template that reads it."""
    values, made = before(chart, name)
    try:
        return chart.files(changed(values, path, new)) != made
    except helm.HelmRenderError:
        return True
    except helm.HelmValuesError:
        return False


@pytest.mark.parametrize("path", LEAVES)
def test_every_value_is_read_by_a_template(chart: Rendered, path: str) -> None:
    files = sorted(FILES, key=lambda name: name != "everything")
    assert any(shows(chart, name, path, new) for name in files for new in others(LEAVES[path]))


PER_PROCESS = ("gateway", "worker", "memoryStore")


def properties(path: str, schema: JsonSchema) -> JsonSchema | None:
    """The schema of a dotted path; None where there is none; what is below a free mapping is free."""
    here = schema
    for name in path.split("."):
        if "properties" not in here:
            return here
        if name not in here["properties"]:
            return None
        here = here["properties"][name]
    return here


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_value_of_a_template_is_in_the_schema(template: Path) -> None:
    schema = chart_schema(VALUES.read_text())
    used = re.findall(r"\.Values\.([A-Za-z][A-Za-z.]*[A-Za-z])", template.read_text())
    assert [path for path in used if properties(path, schema) is None] == []


def test_every_value_of_a_model_is_in_the_schema() -> None:
    known = chart_schema(VALUES.read_text())["$defs"]["model"]
    text = (CHART / "templates/inference.yaml").read_text() + (CHART / "templates/_urls.tpl").read_text()
    used = re.findall(r"\$model\.([A-Za-z][A-Za-z.]*)", text)
    used += re.findall(r"\.values\.([A-Za-z][A-Za-z.]*)", (CHART / "templates/_inference.tpl").read_text())
    assert len(used) > 20
    assert [path for path in used if properties(path, known) is None] == []


def test_every_value_of_a_process_is_in_the_schema_of_all_three() -> None:
    schema = chart_schema(VALUES.read_text())["properties"]
    used = re.findall(r"\.values\.([A-Za-z][A-Za-z.]*)", (CHART / "templates/_process.tpl").read_text())
    assert used
    assert [(part, path) for part in PER_PROCESS for path in used if properties(path, schema[part]) is None] == []


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_are_short_and_make_no_secret(template: Path) -> None:
    text = template.read_text()
    assert len(text.splitlines()) < 150
    assert not re.search(r'\b(lookup (?!"batch/v1" "Job")|randAlpha\w*|genSelfSigned\w*|genPrivateKey)\b', text)
    assert "kind: Secret\n" not in text
