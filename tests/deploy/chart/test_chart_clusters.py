"""Redis and Qdrant that fail over, and the presets of four platforms."""

import pytest

from tests.deploy.chart.chart_release import PRESETS, Rendered, values_of
from tests.deploy.chart.test_chart_connections import policies, ports


def test_the_store_knows_every_node_of_qdrant_and_its_copies(chart: Rendered) -> None:
    settings = chart.objects(values_of("high-availability")).settings("demo-memory-store")
    assert str(settings["QDRANT_URL"]).count("http://qdrant-") == 3
    assert settings["MEMLOOP_QDRANT_SHARDS"] == "6"
    assert settings["MEMLOOP_QDRANT_REPLICAS"] == settings["MEMLOOP_QDRANT_WRITE_CONSISTENCY"] == "2"
    assert "QDRANT_GRPC_PORT" not in settings


@pytest.mark.parametrize("process", ["gateway", "worker", "memory-store"])
def test_a_write_is_on_a_replica_of_redis_before_it_is_acknowledged(chart: Rendered, process: str) -> None:
    settings = chart.objects(values_of("high-availability")).settings(f"demo-{process}")
    assert settings["MEMLOOP_REDIS_ACK_COPIES"] == "1"
    assert str(settings["MEMLOOP_REDIS_URL"]).startswith("redis+sentinel://")


def test_nothing_of_it_runs_once(chart: Rendered) -> None:
    objects = chart.objects(values_of("high-availability"))
    assert min(one["spec"]["replicas"] for one in objects.of("Deployment")) >= 2
    assert objects.of("StatefulSet") == []


def test_grpc_has_its_port_in_settings_and_network(chart: Rendered) -> None:
    objects = chart.objects(values_of("qdrant-grpc"))
    assert objects.settings("demo-memory-store")["QDRANT_GRPC_PORT"] == "6334"
    assert [6333, 6334] in [ports(rule) for rule in policies(objects)["memory-store"]["egress"]]


def test_every_node_of_qdrant_is_reached(chart: Rendered) -> None:
    values = values_of("high-availability")
    values["qdrant"]["url"] = "http://a:6333,http://b:7333"
    rules = policies(chart.objects(values))["memory-store"]["egress"]
    assert [6333, 7333] in [ports(rule) for rule in rules]


@pytest.mark.parametrize("preset", sorted(set(PRESETS) - {"openshift"}))
def test_a_preset_names_a_class_for_every_disk(chart: Rendered, preset: str) -> None:
    values = values_of(preset)
    for part in ("redis", "qdrant"):
        values[part] = {**values[part], "enabled": True, "url": ""}
    values["backup"] = {**values["backup"], "enabled": True}
    objects = chart.objects(values)
    claims = [one["spec"] for one in objects.of("PersistentVolumeClaim")]
    claims += [one["spec"]["volumeClaimTemplates"][0]["spec"] for one in objects.of("StatefulSet")]
    assert len(claims) == 4
    assert all(claim["storageClassName"] for claim in claims)


def test_openshift_chooses_users_and_groups(chart: Rendered) -> None:
    for _, pod in chart.objects(values_of("openshift")).pods():
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & pod["spec"]["securityContext"].keys()


def test_openshifts_router_and_prometheus_get_through(chart: Rendered) -> None:
    rules = policies(chart.objects(values_of("openshift")))["gateway"]["ingress"]
    labels = [
        peer["namespaceSelector"]["matchLabels"]
        for rule in rules
        for peer in rule["from"]
        if len(peer) == 1 and "namespaceSelector" in peer
    ]
    assert {"network.openshift.io/policy-group": "ingress"} in labels
    assert {"kubernetes.io/metadata.name": "openshift-user-workload-monitoring"} in labels
