"""The CycloneDX documents of ``make sbom``: every package of a lock, with its hashes, the same bytes each time."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / ".venv-deploy/bin/cyclonedx-py"
LOCKS = sorted((ROOT / "requirements/images").glob("*.lock"))
_PIN = re.compile(r"^([a-zA-Z0-9._-]+)(?:\[.*\])?==([^ ;\\]+)", re.MULTILINE)


def sbom_of(lock: Path, out: Path) -> bytes:
    command = [TOOL, "requirements", "--output-reproducible", "--of", "JSON", "-o", out, lock]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return out.read_bytes()


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_package_of_a_lock_is_listed_with_its_hashes(lock: Path, tmp_path: Path) -> None:
    components = json.loads(sbom_of(lock, tmp_path / "sbom.json"))["components"]
    assert {(one["name"], one["version"]) for one in components} == set(_PIN.findall(lock.read_text()))
    hashes = [[each for each in one["externalReferences"] if each.get("hashes")] for one in components]
    assert all(hashes)
    assert all(one["purl"].startswith("pkg:pypi/") for one in components)


def test_the_same_lock_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (sbom_of(LOCKS[0], tmp_path / f"{number}.json") for number in range(2))
    assert first == second
