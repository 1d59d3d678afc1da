"""HTTPRoutes and ExternalSecrets against their published schemas, which npm alone has: Node is needed."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.deploy.chart.chart_release import FILES, Object, Rendered, values_of

SOURCE = Path(__file__).with_name("published")
KINDS = ("ExternalSecret", "HTTPRoute")
Validate: TypeAlias = Callable[[list[Object]], list[str | None]]


@pytest.fixture(scope="module")
def validate(tmp_path_factory: pytest.TempPathFactory) -> Validate:
    """What is wrong with each of some objects, or None."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("Node and npm are not installed")
    folder = tmp_path_factory.mktemp("published")
    for path in SOURCE.iterdir():
        shutil.copy(path, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"npm could not install the schemas: {done.stderr.strip().splitlines()[-1]}")

    def run(objects: list[Object]) -> list[str | None]:
        text = json.dumps(objects)
        checked = subprocess.run(
            ["node", "validate.js"], cwd=folder, input=text, capture_output=True, text=True, timeout=60, check=True
        )
        return json.loads(checked.stdout)

    return run


def found(chart: Rendered) -> list[Object]:
    return [one for name in sorted(FILES) for one in chart.objects(values_of(name)) if one["kind"] in KINDS]


def test_every_object_fits_its_published_schema(chart: Rendered, validate: Validate) -> None:
    objects = found(chart)
    assert {one["kind"] for one in objects} == set(KINDS)
    assert validate(objects) == [None] * len(objects)


def test_a_wrong_type_is_seen(chart: Rendered, validate: Validate) -> None:
    broken = [one | {"spec": one["spec"] | {"refreshInterval": [5], "hostnames": 5}} for one in found(chart)]
    assert None not in validate(broken)
