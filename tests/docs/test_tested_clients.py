"""The table of tested clients has the versions that the tests install."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| (?:npm|PyPI) `(?P<name>[^`]+)` \| (?P<version>\S+) \| [^|]+ \| `(?P<file>[^`]+)` \|$", re.MULTILINE
)
ROWS = [found.groupdict() for found in ROW.finditer((ROOT / "docs/how-to/clients.md").read_text("utf-8"))]


def test_at_least_twenty_clients_are_tested() -> None:
    assert len(ROWS) >= 20


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['name']}, {row['file']}" for row in ROWS])
def test_a_clients_version_is_the_pinned_one(row: dict[str, str]) -> None:
    pins = (ROOT / row["file"]).read_text("utf-8")
    if row["file"].endswith(".json"):
        assert json.loads(pins)["dependencies"][row["name"]] == row["version"]
    else:
        assert re.search(rf"^{re.escape(row['name'])}=={re.escape(row['version'])} ", pins, re.MULTILINE)
