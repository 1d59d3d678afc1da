"""Upgrades of a release in a cluster whose objects are there already."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import helm_python as helm
import pytest

from tests.deploy.chart.api_server import Stored, api_server
from tests.deploy.chart.chart_release import Rendered, Values, changed, values_of

BATCH: Final = "/apis/batch/v1/namespaces/memloop/jobs"
APPS: Final = "/apis/apps/v1/namespaces/memloop"
RUN: Final = f"{BATCH}/demo-promotion-reader-step-40"
QDRANT: Final = f"{APPS}/statefulsets/demo-qdrant"
PROMOTION: Final = values_of("promotion")
TRIAL: Final = values_of("trial")


class Release:
    """A release in a cluster of its own, and the objects there."""

    def __init__(self, chart: helm.Chart, config: helm.Config, stored: Stored) -> None:
        self.stored = stored
        self._chart = chart
        self._config = config

    def upgrade(self, values: Values) -> None:
        """Raises helm.HelmError."""
        self._config.upgrade(self._chart, "demo", values)

    def image(self, path: str) -> str:
        """The image of the object's container."""
        return self.stored[path]["spec"]["template"]["spec"]["containers"][0]["image"]


@pytest.fixture
def install(chart: Rendered) -> Iterator[Callable[[Values], Release]]:
    """Installs a release of these values."""
    with ExitStack() as stack:

        def installed(values: Values) -> Release:
            kinds = [(each["apiVersion"], each["kind"]) for each in chart.objects(values)]
            kubeconfig, stored = stack.enter_context(api_server(kinds))
            config = stack.enter_context(
                helm.Config(namespace="memloop", kubeconfig_content=kubeconfig, storage_driver="memory")
            )
            config.install(chart.chart, "demo", values)
            return Release(chart.chart, config, stored)

        yield installed


def test_an_upgrade_to_other_images_leaves_the_promotion_job_as_it_is(install: Callable[[Values], Release]) -> None:
    release = install(PROMOTION)
    job = release.image(RUN)
    for mirror in ("one.example.com/", "two.example.com/"):
        release.upgrade(changed(PROMOTION, "image.registry", mirror))
        assert release.image(RUN) == job
        assert release.image(f"{APPS}/deployments/demo-gateway").startswith(mirror)


def test_an_upgrade_with_another_run_id_starts_another_job(install: Callable[[Values], Release]) -> None:
    release = install(PROMOTION)
    release.upgrade(changed(PROMOTION, "promotion.runId", "reader-step-50"))
    assert [path for path in release.stored if path.startswith(BATCH)] == [
        RUN,
        f"{BATCH}/demo-promotion-reader-step-50",
    ]


def test_a_larger_disk_needs_the_stateful_set_to_be_deleted_first(install: Callable[[Values], Release]) -> None:
    release, larger = install(TRIAL), changed(TRIAL, "qdrant.size", "200Gi")
    with pytest.raises(helm.HelmError, match="volumeClaimTemplates"):
        release.upgrade(larger)
    del release.stored[QDRANT]
    release.upgrade(larger)
    [claim] = release.stored[QDRANT]["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"] == {"storage": "200Gi"}
