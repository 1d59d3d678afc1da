"""checkov over all that the matrix renders. Each finding is mended, or excused here with its reason."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.deploy.chart.chart_release import FILES, Rendered, values_of

EXCUSED = {
    "CKV_K8S_11": "A CPU limit throttles a process that has a free core beside it; requests share the cores out.",
    "CKV_K8S_15": "IfNotPresent is right for tags that do not move, and for digests; image.pullPolicy changes it.",
    "CKV_K8S_35": "The processes read secrets from their environment, which no log of theirs prints.",
    "CKV_K8S_40": "OpenShift's own constraint gives a high user where `podSecurity` leaves it to the platform.",
    "CKV_K8S_43": "A digest is known once you have built or mirrored an image: give it as images.NAME.digest.",
}
EXCUSED_TEST_POD = {
    "CKV_K8S_8": "`helm test` runs it once; a probe of what ends by itself means nothing.",
    "CKV_K8S_9": "As above: nothing waits for it to be ready.",
}


EXCUSED_WITHOUT_POLICIES = {"CKV2_K8S_6": "No policy covers the pods of a release that turns the policies off."}
WITHOUT_POLICIES = {name for name in FILES if not values_of(name).get("networkPolicy", {}).get("enabled", True)}


class Finding(NamedTuple):
    check: str
    release: str
    resource: str


@pytest.fixture(scope="module")
def findings(chart: Rendered, tmp_path_factory: pytest.TempPathFactory) -> set[Finding]:
    """What fails in each file's release, which bears the file's name.

    checkov links all that it reads into one graph: under one name, the policies of one file would cover the pods of
    another, and the edges would grow with the square of the files.
    """
    folder = tmp_path_factory.mktemp("rendered")
    for name in FILES:
        (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(chart.objects(values_of(name), name=name)))
    report = _report(folder)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 1000
    failed = report["results"]["failed_checks"]
    return {Finding(one["check_id"], Path(one["file_path"]).stem, one["resource"]) for one in failed}


def _report(folder: Path) -> Any:
    """In one process, and without asking its vendor's service for guidelines."""
    checkov = Path(sys.executable).with_name("checkov")
    options = ["--framework", "kubernetes", "--skip-download", "--compact", "--quiet", "--output", "json"]
    environment = os.environ | {"CHECKOV_PARALLELIZATION_TYPE": "none"}
    command = [checkov, "--directory", folder, *options]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    return json.loads(done.stdout)


def test_every_finding_is_mended_or_has_a_reason(findings: set[Finding]) -> None:
    excused = EXCUSED.keys() | EXCUSED_TEST_POD.keys() | EXCUSED_WITHOUT_POLICIES.keys()
    assert {found for found in findings if found.check not in excused} == set()


def test_the_test_pods_excuses_excuse_nothing_else(findings: set[Finding]) -> None:
    found = {(one.check, one.resource) for one in findings if one.check in EXCUSED_TEST_POD}
    assert found == {(check, f"Pod.memloop.{name}-smoke-test") for check in EXCUSED_TEST_POD for name in FILES}


def test_policies_cover_every_pod_unless_they_are_turned_off(findings: set[Finding]) -> None:
    assert {one.release for one in findings if one.check in EXCUSED_WITHOUT_POLICIES} == WITHOUT_POLICIES


def test_no_excuse_has_outlived_its_finding(findings: set[Finding]) -> None:
    assert EXCUSED.keys() <= {found.check for found in findings}
