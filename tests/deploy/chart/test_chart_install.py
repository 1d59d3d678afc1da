"""An install with few values: images that are found, and disks that every cloud can attach."""

import pytest

from tests.deploy.chart.chart_release import FILES, Object, Objects, Rendered, Values, changed, values_of

KEDA: Values = {"keda": {"prometheusUrl": "http://prometheus:9090"}}
OURS = "registry.example.com/memloop/"


def images(objects: Objects) -> set[str]:
    return {container["image"] for _, pod in objects.pods() for container in pod["spec"]["containers"]}


def test_redis_and_qdrant_come_from_their_own_registry(chart: Rendered) -> None:
    others = {image for image in images(chart.objects(values_of("trial"))) if not image.startswith(OURS)}
    assert others == {"docker.io/library/redis:7.4-bookworm", "docker.io/qdrant/qdrant:v1.20.0-unprivileged"}


@pytest.mark.parametrize("file", sorted(FILES))
def test_every_image_names_its_registry(chart: Rendered, file: str) -> None:
    for image in images(chart.objects(values_of(file))):
        host = image.split("/")[0]
        assert "." in host or ":" in host or host == "localhost", image


def test_one_image_can_have_another_registry(chart: Rendered) -> None:
    values = changed(values_of("trial"), "images.redis.registry", "mirror.example.com:5000/")
    assert "mirror.example.com:5000/library/redis:7.4-bookworm" in images(chart.objects(values))


def engine(objects: Objects) -> tuple[Object, Object]:
    """Its Deployment's spec and the volume of its weights."""
    spec = objects.named("Deployment", "demo-inference-main")["spec"]
    [cache] = [volume for volume in spec["template"]["spec"]["volumes"] if volume["name"] == "cache"]
    return spec, cache


def test_by_default_no_claim_needs_a_disk_on_several_nodes(chart: Rendered, minimal: Values) -> None:
    for claim in chart.objects(minimal).of("PersistentVolumeClaim"):
        assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_one_replica_keeps_its_weights_and_ends_before_the_next_one_starts(chart: Rendered, minimal: Values) -> None:
    objects = chart.objects(minimal)
    spec, cache = engine(objects)
    assert spec["strategy"] == {"type": "Recreate"}
    claim = objects.named("PersistentVolumeClaim", cache["persistentVolumeClaim"]["claimName"])
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize(
    "defaults", [{"replicas": 3}, {"autoscaling": {"mode": "load"}}], ids=["replicas", "autoscaling"]
)
def test_several_replicas_have_a_disk_each(chart: Rendered, minimal: Values, defaults: Values) -> None:
    objects = chart.objects(changed(minimal | KEDA, "inference.defaults", defaults))
    spec, cache = engine(objects)
    assert spec["strategy"]["type"] == "RollingUpdate"
    assert cache["ephemeral"]["volumeClaimTemplate"]["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert objects.of("PersistentVolumeClaim") == []


def test_several_replicas_share_a_claim_that_several_nodes_can_attach(chart: Rendered, minimal: Values) -> None:
    shared = {"replicas": 3, "cache": {"accessMode": "ReadWriteMany", "storageClass": "files"}}
    objects = chart.objects(changed(minimal, "inference.defaults", shared))
    spec, cache = engine(objects)
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    claim = objects.named("PersistentVolumeClaim", cache["persistentVolumeClaim"]["claimName"])
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["spec"]["storageClassName"] == "files"
