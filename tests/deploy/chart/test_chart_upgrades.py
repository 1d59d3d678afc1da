"""Upgrades of a release in a cluster whose objects are there already."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import helm_python as helm
import pytest

from tests.deploy.chart.chart_release import Object, Rendered, Values, changed, values_of
from tests.deploy.kubernetes.kube_api import KubeApi
from tests.deploy.kubernetes.kube_objects import Key, Objects
from tests.kubernetes.crds import KINDS

PROMOTION: Final = values_of("promotion")
TRIAL: Final = values_of("trial")
GATEWAY: Final[Key] = ("apps/v1", "deployments", "memloop", "demo-gateway")
QDRANT: Final[Key] = ("apps/v1", "statefulsets", "memloop", "demo-qdrant")
RUN: Final[Key] = ("batch/v1", "jobs", "memloop", "demo-promotion-reader-step-40")


class Release:
    """A release in a cluster of its own, and the objects there."""

    def __init__(self, chart: helm.Chart, config: helm.Config, stored: Objects) -> None:
        self.stored = stored
        self._chart = chart
        self._config = config

    def upgrade(self, values: Values) -> None:
        """Raises helm.HelmError."""
        self._config.upgrade(self._chart, "demo", values)

    def image(self, key: Key) -> str:
        """The image of the object's container."""
        return self.stored.get(key)["spec"]["template"]["spec"]["containers"][0]["image"]


@pytest.fixture
def install(chart: Rendered, tmp_path: Path) -> Iterator[Callable[[Values], Release]]:
    """Installs a release of these values."""
    api = KubeApi()
    for kind in KINDS:
        api.objects.kinds.setdefault(kind.api_version, {})[kind.name] = kind.plural
    space: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "memloop"}}
    api.objects.create(("v1", "namespaces", "", ""), space, dry_run=False, strict=True)
    kubeconfig = api.start(tmp_path).read_text()
    with helm.Config(namespace="memloop", kubeconfig_content=kubeconfig, storage_driver="memory") as config:

        def installed(values: Values) -> Release:
            config.install(chart.chart, "demo", values)
            return Release(chart.chart, config, api.objects)

        yield installed
    api.stop()


def test_an_upgrade_to_other_images_leaves_the_promotion_job_as_it_is(install: Callable[[Values], Release]) -> None:
    release = install(PROMOTION)
    job = release.image(RUN)
    for mirror in ("one.example.com/", "two.example.com/"):
        release.upgrade(changed(PROMOTION, "image.registry", mirror))
        assert release.image(RUN) == job
        assert release.image(GATEWAY).startswith(mirror)


def test_an_upgrade_with_another_run_id_starts_another_job(install: Callable[[Values], Release]) -> None:
    release = install(PROMOTION)
    release.upgrade(changed(PROMOTION, "promotion.runId", "reader-step-50"))
    jobs = [key[3] for key in release.stored.objects if key[1] == "jobs"]
    assert jobs == [RUN[3], "demo-promotion-reader-step-50"]


def test_a_larger_disk_needs_the_stateful_set_to_be_deleted_first(install: Callable[[Values], Release]) -> None:
    release, larger = install(TRIAL), changed(TRIAL, "qdrant.size", "200Gi")
    with pytest.raises(helm.HelmError, match="volumeClaimTemplates"):
        release.upgrade(larger)
    release.stored.delete(QDRANT)
    release.upgrade(larger)
    [claim] = release.stored.get(QDRANT)["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"] == {"storage": "200Gi"}
