"""The chart as an archive, pushed to a registry of OCI artifacts and pulled again, makes the same objects."""

import subprocess
import sys
from pathlib import Path

import helm_python as helm
import pytest

from tests.deploy.chart.chart_release import ROOT, Rendered, values_of
from tests.deploy.chart.oci_registry import oci_registry


def publish(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "deploy.helm.publish", str(folder), *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=120).stdout


def test_a_pulled_chart_renders_as_the_folder_does(chart: Rendered, tmp_path: Path) -> None:
    with oci_registry() as registry:
        publish(tmp_path / "dist", "--to", f"oci://{registry}/charts", "--plain-http")
        (tmp_path / "pulled").mkdir()
        version = chart.chart.version
        helm.pull(
            f"oci://{registry}/charts/memloop", version=version, destination=str(tmp_path / "pulled"), plain_http=True
        )
    [archive] = (tmp_path / "pulled").glob("*.tgz")
    with helm.Chart.load(str(archive)) as pulled:
        values = values_of("trial")
        assert Rendered(pulled).objects(values) == chart.objects(values)


def test_an_archive_alone_can_be_made(tmp_path: Path) -> None:
    made = Path(publish(tmp_path).split()[-1])
    assert made.parent == tmp_path
    with (
        pytest.raises(helm.HelmError, match=r"secrets\.existingSecret is needed"),
        helm.Chart.load(str(made)) as packed,
    ):
        packed.render({}, name="demo")
