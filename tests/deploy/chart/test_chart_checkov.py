"""checkov over all that the matrix renders. Each finding is mended, or excused here with its reason."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

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


@pytest.fixture(scope="module")
def findings(chart: Rendered, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The resources that fail, by check."""
    folder = tmp_path_factory.mktemp("rendered")
    for name in FILES:
        (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(chart.objects(values_of(name))))
    checkov = Path(sys.executable).with_name("checkov")
    command = [checkov, "--directory", folder, "--framework", "kubernetes", "--compact", "--quiet", "--output", "json"]
    environment = os.environ | {"BC_SKIP_MAPPING": "true"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    report = json.loads(done.stdout)
    assert report["summary"]["parsing_errors"] == 0
    assert report["summary"]["passed"] > 1000
    failed: dict[str, set[str]] = defaultdict(set)
    for finding in report["results"]["failed_checks"]:
        failed[finding["check_id"]].add(finding["resource"])
    return failed


def test_every_finding_is_mended_or_has_a_reason(findings: dict[str, set[str]]) -> None:
    assert set(findings) - set(EXCUSED) - set(EXCUSED_TEST_POD) == set()


def test_the_test_pods_excuses_excuse_nothing_else(findings: dict[str, set[str]]) -> None:
    for check in EXCUSED_TEST_POD:
        assert findings[check] == {"Pod.memloop.demo-smoke-test"}


def test_no_excuse_has_outlived_its_finding(findings: dict[str, set[str]]) -> None:
    assert set(EXCUSED) | set(EXCUSED_TEST_POD) <= set(findings)
