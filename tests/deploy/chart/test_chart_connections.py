"""Who calls whom: URLs of the processes, and the network policies that allow just that."""

from typing import TypeAlias

import pytest

from tests.deploy.chart.chart_release import FILES, Object, Objects, Rendered, Values, changed, values_of

Flow: TypeAlias = tuple[str, str, int]
"""From, to, port."""
CHART_FLOWS = {
    ("smoke-test", "gateway", 7800),
    ("gateway", "memory-store", 7801),
    ("worker", "memory-store", 7801),
    ("gateway", "inference", 7802),
    ("gateway", "inference", 7803),
    ("worker", "inference", 7802),
    ("worker", "inference", 7803),
    ("gateway", "redis", 6379),
    ("worker", "redis", 6379),
    ("memory-store", "redis", 6379),
    ("memory-store", "qdrant", 6333),
}
COMPONENT = "app.kubernetes.io/component"


def policies(objects: Objects) -> dict[str, Object]:
    return {one["metadata"]["name"].removeprefix("demo-"): one["spec"] for one in objects.of("NetworkPolicy")}


def components(rule: Object, side: str) -> list[str]:
    selectors = [peer.get("podSelector", {}).get("matchLabels", {}) for peer in rule.get(side, ())]
    return [labels[COMPONENT] for labels in selectors if COMPONENT in labels]


def ports(rule: Object) -> list[int]:
    return [int(port["port"]) for port in rule.get("ports", ())]


def inner_flows(objects: Objects, direction: str) -> set[Flow]:
    """Between components of the release, as one side allows them."""
    side = {"ingress": "from", "egress": "to"}[direction]
    flows: set[Flow] = set()
    for name, spec in policies(objects).items():
        for rule in spec[direction]:
            for peer in components(rule, side):
                ends = (peer, name) if direction == "ingress" else (name, peer)
                flows |= {(*ends, port) for port in ports(rule)}
    return flows


@pytest.mark.parametrize("direction", ["ingress", "egress"])
def test_the_release_allows_its_own_flows_and_no_other(chart: Rendered, direction: str) -> None:
    assert inner_flows(chart.objects(values_of("trial")), direction) == CHART_FLOWS


@pytest.mark.parametrize("file", sorted(set(FILES) - {"ray-cluster"}))
def test_every_pod_is_under_the_default_that_denies_all_but_names(chart: Rendered, file: str) -> None:
    objects = chart.objects(values_of(file))
    default = policies(objects)["default"]
    assert default["policyTypes"] == ["Ingress", "Egress"]
    assert default["ingress"] == []
    assert {port for rule in default["egress"] for port in ports(rule)} <= {53, 5353}
    assert all(rule["to"] for rule in default["egress"])
    chosen = default["podSelector"]["matchLabels"].items()
    assert all(chosen <= pod["metadata"]["labels"].items() for _, pod in objects.pods())


def test_network_policies_can_be_left_to_others(chart: Rendered) -> None:
    assert policies(chart.objects(values_of("ray-cluster"))) == {}


def test_every_component_has_a_policy_of_its_own(chart: Rendered) -> None:
    objects = chart.objects(values_of("everything"))
    running = {pod["metadata"]["labels"][COMPONENT] for _, pod in objects.pods()}
    assert running == set(policies(objects)) - {"default"}


def test_no_rule_of_a_closed_network_is_open_to_everybody(chart: Rendered) -> None:
    for name, spec in policies(chart.objects(values_of("restricted-network"))).items():
        for direction, side in (("ingress", "from"), ("egress", "to")):
            for rule in spec[direction]:
                assert rule.get(side), f"{name} {direction} on {ports(rule)}"
                assert ports(rule), f"{name} {direction}"


@pytest.mark.parametrize("process", ["gateway", "worker", "memory-store"])
def test_prometheus_reaches_the_port_of_metrics_and_no_other(chart: Rendered, minimal: Values, process: str) -> None:
    prometheus = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
    objects = chart.objects(changed(minimal, "networkPolicy.metrics", prometheus))
    rules = policies(objects)[process]["ingress"]
    assert [ports(rule) for rule in rules if rule.get("from") == prometheus] == [[7809]]
    assert all(7809 not in ports(rule) for rule in rules if rule.get("from") != prometheus)
    assert objects.settings(f"demo-{process}")["MEMLOOP_METRICS_PORT"] == "7809"


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("redis://host:7000/0", 7000),
        ("redis://host/0", 6379),
        ("rediss://h.example:6380", 6380),
        ("redis+cluster://c", 6379),
    ],
)
def test_the_way_to_redis_is_open_on_its_port(chart: Rendered, minimal: Values, url: str, port: int) -> None:
    objects = chart.objects(changed(minimal, "redis.url", url))
    for process in ("gateway", "worker", "memory-store"):
        outside = [ports(rule) for rule in policies(objects)[process]["egress"] if not components(rule, "to")]
        assert [port] in outside


def test_the_way_to_every_node_of_a_cluster_is_open(chart: Rendered) -> None:
    for process in ("gateway", "worker", "memory-store"):
        rules = policies(chart.objects(values_of("multi-model")))[process]["egress"]
        assert [6379, 6380] in [ports(rule) for rule in rules]


def test_the_ways_to_sentinels_and_to_what_they_watch_are_open(chart: Rendered, minimal: Values) -> None:
    given = changed(minimal, "redis", {"url": "rediss+sentinel://a,b:26380/main", "ackCopies": 1})
    hidden = changed(minimal, "redis", {"urlSecret": {"name": "redis"}})
    for values, expected in ((given, [26379, 26380, 6379]), (hidden, [6379, 26379])):
        objects = chart.objects(values)
        for process in ("gateway", "worker", "memory-store"):
            assert expected in [ports(rule) for rule in policies(objects)[process]["egress"]]


@pytest.mark.parametrize("process", ["gateway", "worker", "memory-store"])
def test_every_process_waits_for_the_copies_that_are_asked_for(chart: Rendered, minimal: Values, process: str) -> None:
    for copies in (0, 2):
        objects = chart.objects(changed(minimal, "redis.ackCopies", copies))
        assert objects.settings(f"demo-{process}")["MEMLOOP_REDIS_ACK_COPIES"] == str(copies)


@pytest.mark.parametrize(("url", "port"), [("https://q.example", 443), ("http://q", 80), ("http://q:6333", 6333)])
def test_the_way_to_qdrant_is_open_on_its_port(chart: Rendered, minimal: Values, url: str, port: int) -> None:
    objects = chart.objects(changed(minimal, "qdrant.url", url))
    assert objects.settings("demo-memory-store")["QDRANT_URL"] == url
    assert [port] in [ports(rule) for rule in policies(objects)["memory-store"]["egress"]]


def test_only_the_worker_reaches_receivers_of_webhooks(chart: Rendered) -> None:
    objects = chart.objects(changed(values_of("sglang"), "networkPolicy", {"internet": {"modelHub": False}}))
    reaching = {
        name
        for name, spec in policies(objects).items()
        if any("ipBlock" in peer for rule in spec["egress"] for peer in rule.get("to", ()) if ports(rule) == [443])
    }
    assert reaching == {"worker"}


def test_an_engine_without_the_hub_goes_nowhere(chart: Rendered) -> None:
    assert policies(chart.objects(values_of("sglang")))["inference"]["egress"] == []


@pytest.mark.parametrize("process", ["gateway", "worker"])
def test_gateway_and_worker_use_the_releases_own_services(chart: Rendered, minimal: Values, process: str) -> None:
    settings = chart.objects(minimal).settings(f"demo-{process}")
    assert settings["MEMLOOP_STORE_URL"] == "http://demo-memory-store-pods:7801"
    assert settings["MEMLOOP_INFERENCE_URL"] == "http://demo-inference-main-pods:7802"
    assert settings["MEMLOOP_ENGINE_URL"] == "http://demo-inference-main-pods:7803/v1"
    assert settings["MEMLOOP_MODEL"] == "Qwen3-4B"


@pytest.mark.parametrize(
    "engine",
    [{}, {"servedName": "ours"}, {"model": "org/Memory-4B", "modelPath": "/cache/checkpoint-200"}],
    ids=["a row", "a name", "a folder"],
)
def test_the_engine_serves_the_name_that_gateways_ask_for(chart: Rendered, minimal: Values, engine: Values) -> None:
    models = [{"name": "main", "model": "Qwen3-4B", **engine}]
    objects = chart.objects(changed(minimal, "inference.models", models))
    served = objects.settings("demo-inference-main")["MEMLOOP_SERVE_NAME"]
    assert objects.settings("demo-gateway")["MEMLOOP_MODEL"] == served


def test_an_external_engine_replaces_the_own_one(chart: Rendered) -> None:
    objects = chart.objects(values_of("external-engine"))
    assert {owner for owner, _ in objects.pods()} == {
        f"demo-{name}" for name in ("gateway", "worker", "memory-store", "smoke-test")
    }
    settings = objects.settings("demo-worker")
    assert settings["MEMLOOP_ENGINE_URL"] == "https://models.example.com/v1"
    assert settings["MEMLOOP_MODEL"] == "Qwen3-32B"
    assert "MEMLOOP_INFERENCE_URL" not in settings


def test_two_pools_of_one_model_stand_in_for_each_other(chart: Rendered) -> None:
    settings = chart.objects(values_of("pools")).settings("demo-gateway")
    assert settings["MEMLOOP_ENGINE_URL"] == "http://demo-inference-spot-pods:7803/v1"
    assert settings["MEMLOOP_ENGINE_FALLBACK_URLS"] == "http://demo-inference-reserved-pods:7803/v1"


def test_a_router_stands_before_models_that_differ(chart: Rendered) -> None:
    settings = chart.objects(values_of("multi-model")).settings("demo-gateway")
    assert settings["MEMLOOP_ENGINE_URL"] == "http://router.models/v1"
    assert settings["MEMLOOP_ENGINE_FALLBACK_URLS"] == "https://spare.example.com:8443/v1"
    assert settings["MEMLOOP_MODEL"] == "MemReader-4B-thinking"


@pytest.mark.parametrize("process", ["gateway", "worker"])
@pytest.mark.parametrize(
    ("storage", "url"),
    [({}, None), ({"existingClaim": "documents"}, "file:///data"), ({"url": "s3://b/p"}, "s3://b/p")],
    ids=["none", "claim", "bucket"],
)
def test_gateway_and_worker_share_one_storage_or_have_none(
    chart: Rendered, minimal: Values, process: str, storage: Values, url: str | None
) -> None:
    objects = chart.objects(minimal | {"storage": storage})
    assert objects.settings(f"demo-{process}").get("MEMLOOP_STORAGE_URL") == url
    mounts = objects.pod(f"demo-{process}")["spec"]["containers"][0]["volumeMounts"]
    assert ({"name": "documents", "mountPath": "/data"} in mounts) == ("existingClaim" in storage)


def test_the_own_redis_wants_the_password_that_the_processes_give(chart: Rendered) -> None:
    objects = chart.objects(values_of("trial"))
    [redis] = objects.pod("demo-redis")["spec"]["containers"]
    assert 'echo "requirepass $REDISCLI_AUTH" > /tmp/redis.conf' in redis["command"][2]
    assert [entry["valueFrom"]["secretKeyRef"]["key"] for entry in redis["env"]] == ["REDIS_PASSWORD"]
    for process in ("gateway", "worker", "memory-store"):
        own = objects.pod(f"demo-{process}")["spec"]["containers"][0]["env"]
        names = [entry["name"] for entry in own]
        assert names.index("REDIS_PASSWORD") < names.index("MEMLOOP_REDIS_URL"), "only what stands before is filled in"
        assert (
            objects.settings(f"demo-{process}")["MEMLOOP_REDIS_URL"] == "redis://:$(REDIS_PASSWORD)@demo-redis:6379/0"
        )


def test_services_and_budgets_choose_the_pods_that_they_mean(chart: Rendered) -> None:
    objects = chart.objects(values_of("everything"))
    pods = {owner: pod["metadata"]["labels"].items() for owner, pod in objects.pods()}
    for one in [*objects.of("Service"), *objects.of("PodDisruptionBudget")]:
        wanted = one["spec"]["selector"].get("matchLabels", one["spec"]["selector"]).items()
        chosen = {owner for owner, labels in pods.items() if wanted <= labels}
        assert chosen == {one["metadata"]["name"].removesuffix("-pods")}
