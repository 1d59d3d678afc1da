"""Peers and ports of the network policies: per service outside, for metrics, for names; and the engines' Services."""

from typing import TypeAlias

import helm_python as helm
import pytest

from tests.deploy.chart.chart_release import Object, Objects, Rendered, Values, changed, values_of
from tests.deploy.chart.test_chart_connections import components, policies, ports

Opening: TypeAlias = tuple[str, tuple[int, ...]]
MODELS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "models"}}}
SRV = "http+srv://_http._tcp.engines.models.svc/v1"
SPARE = {"ipBlock": {"cidr": "198.51.100.7/32"}}
PROMETHEUS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}


def to_outside(objects: Objects, process: str) -> list[Object]:
    """Egress that leaves the release."""
    return [rule for rule in policies(objects)[process]["egress"] if not components(rule, "to")]


@pytest.mark.parametrize("process", ["gateway", "worker"])
def test_each_engine_outside_has_its_own_peers_and_the_ports_of_its_pods(chart: Rendered, process: str) -> None:
    rules = [(rule.get("to"), ports(rule)) for rule in to_outside(chart.objects(values_of("multi-model")), process)]
    assert ([MODELS], [8000]) in rules, "the router's pods, whose Service has port 80"
    assert ([SPARE], [8443]) in rules


def test_engines_by_srv_records_are_reached_on_the_ports_that_their_opening_names(chart: Rendered) -> None:
    opening = {"peers": [MODELS], "ports": [8000]}
    opened = changed(values_of("external-engine"), "networkPolicy.outside.engine", [opening])
    objects = chart.objects(changed(opened, "engine.urls", [SRV]))
    for process in ("gateway", "worker"):
        assert objects.settings(f"demo-{process}")["MEMLOOP_ENGINE_URL"] == SRV
        assert ([MODELS], [8000]) in [(rule.get("to"), ports(rule)) for rule in to_outside(objects, process)]


@pytest.mark.parametrize("openings", [[], [{"ports": [8000]}, {"peers": [MODELS]}]], ids=["none", "one without"])
def test_srv_records_need_the_ports_that_no_url_has(chart: Rendered, openings: list[Object]) -> None:
    opened = changed(values_of("external-engine"), "networkPolicy.outside.engine", openings)
    with pytest.raises(helm.HelmRenderError, match=r"networkPolicy.outside.engine: give the ports"):
        chart.objects(changed(opened, "engine.urls", [SRV]))


@pytest.mark.parametrize("path", ["engine.urls", "models"])
def test_the_url_of_an_engine_has_one_of_the_schemes_that_gateways_accept(chart: Rendered, path: str) -> None:
    refused = ["ftp://e/v1"] if path == "engine.urls" else [{"id": "m", "engineUrls": ["ftp://e/v1"]}]
    with pytest.raises(helm.HelmError, match=r"'ftp://e/v1' does not match pattern '\^https\?\(.*srv"):
        chart.objects(changed(values_of("external-engine"), path, refused))


def test_a_router_reaches_the_engines_and_the_spare_engine_does_not(chart: Rendered) -> None:
    rules = policies(chart.objects(values_of("multi-model")))["inference"]["ingress"]
    others = [(rule["from"], ports(rule)) for rule in rules if not components(rule, "from")]
    assert others == [([MODELS], [7803])]


def test_a_router_that_could_not_reach_the_engines_is_refused(chart: Rendered) -> None:
    with pytest.raises(helm.HelmRenderError, match=r"networkPolicy.engineClients is needed"):
        chart.objects(changed(values_of("multi-model"), "networkPolicy.engineClients", []))


def test_the_store_reaches_the_endpoints_that_its_settings_name(chart: Rendered, minimal: Values) -> None:
    urls = {"MEMLOOP_EMBEDDING_URL": "http://embeddings.models:8080/v1", "MEMLOOP_RERANK_URL": "https://r.example/v1"}
    rules = to_outside(chart.objects(changed(minimal, "memoryStore.env", urls)), "memory-store")
    assert (None, [8080, 443]) in [(rule.get("to"), ports(rule)) for rule in rules]


def test_the_endpoint_of_embeddings_has_its_own_peers(chart: Rendered) -> None:
    rules = to_outside(chart.objects(values_of("restricted-network")), "memory-store")
    assert ([{"ipBlock": {"cidr": "10.20.0.9/32"}}], [8080]) in [(rule.get("to"), ports(rule)) for rule in rules]


@pytest.mark.parametrize(
    ("fetch", "allowed", "opened"),
    [("true", True, True), (True, True, True), ("false", True, False), ("true", False, False)],
)
def test_gateways_reach_the_internet_if_clients_may_have_documents_downloaded(
    chart: Rendered, minimal: Values, fetch: object, allowed: bool, opened: bool
) -> None:
    values = changed(minimal, "gateway.env", {"MEMLOOP_FETCH_URLS": fetch})
    rules = to_outside(chart.objects(changed(values, "networkPolicy.internet.downloads", allowed)), "gateway")
    public = [
        peer for rule in rules for peer in rule.get("to", ()) if peer.get("ipBlock", {}).get("cidr") == "0.0.0.0/0"
    ]
    assert bool(public) == opened


def test_ports_alone_open_the_way_to_every_address(chart: Rendered, minimal: Values) -> None:
    objects = chart.objects(changed(minimal, "networkPolicy.outside.redis", [{"ports": [7001, 7002]}]))
    for process in ("gateway", "worker", "memory-store"):
        assert ([7001, 7002], None) in [(ports(rule), rule.get("to")) for rule in to_outside(objects, process)]


@pytest.mark.parametrize(
    ("part", "process"),
    [
        ("gateway", "gateway"),
        ("worker", "worker"),
        ("memoryStore", "memory-store"),
        ("inference", "inference"),
        ("backup", "backup"),
        ("trainer", "trainer"),
    ],
)
def test_an_added_opening_is_one_of_its_part_alone(chart: Rendered, part: str, process: str) -> None:
    proxy = {"peers": [{"ipBlock": {"cidr": "10.9.8.7/32"}}], "ports": [3128]}
    objects = chart.objects(changed(values_of("everything"), f"networkPolicy.extraEgress.{part}", [proxy]))
    opened = {
        name
        for name, spec in policies(objects).items()
        if any(rule.get("to") == proxy["peers"] for rule in spec["egress"])
    }
    assert opened == {process}


def test_nobody_reads_metrics_until_prometheus_is_named(chart: Rendered, minimal: Values) -> None:
    objects = chart.objects(minimal | {"qdrant": {"enabled": True}})
    for name, spec in policies(objects).items():
        for rule in spec["ingress"]:
            peers = rule.get("from")
            assert peers is None or components(rule, "from"), f"{name} is open to {peers}"
            assert peers is not None or (name, ports(rule)) == ("gateway", [7800])


def test_prometheus_reaches_metrics_and_no_api_of_ours(chart: Rendered) -> None:
    named = policies(chart.objects(values_of("trial")))
    reached = {
        name: [port for rule in spec["ingress"] if rule.get("from") == [PROMETHEUS] for port in ports(rule)]
        for name, spec in named.items()
    }
    assert {name: found for name, found in reached.items() if found} == {
        "gateway": [7809],
        "worker": [7809],
        "memory-store": [7809],
        "inference": [7803, 7809],  # vLLM and SGLang have metrics on their API's port alone
        "qdrant": [6333],  # so has Qdrant
    }


def test_monitors_without_a_prometheus_that_gets_through_are_refused(chart: Rendered) -> None:
    with pytest.raises(helm.HelmRenderError, match=r"networkPolicy.metrics is needed with monitoring.monitors"):
        chart.objects(changed(values_of("trial"), "networkPolicy.metrics", []))


@pytest.mark.parametrize(
    ("peer", "port"),
    [
        ({"k8s-app": "kube-dns"}, 53),
        ({"dns.operator.openshift.io/daemonset-dns": "default"}, 5353),
        ("169.254.20.10/32", 53),
    ],
    ids=["CoreDNS", "OpenShift", "NodeLocal DNSCache"],
)
def test_names_are_resolved_on_every_kind_of_cluster(chart: Rendered, minimal: Values, peer: object, port: int) -> None:
    [rule] = policies(chart.objects(minimal))["default"]["egress"]
    known = [one.get("podSelector", {}).get("matchLabels") or one["ipBlock"]["cidr"] for one in rule["to"]]
    assert peer in known
    assert {(one["protocol"], one["port"]) for one in rule["ports"]} >= {("UDP", port), ("TCP", port)}


@pytest.mark.parametrize("process", ["inference-main", "memory-store"])
def test_gateways_see_each_ready_pod(chart: Rendered, minimal: Values, process: str) -> None:
    objects = chart.objects(minimal)
    service = objects.named("Service", f"demo-{process}-pods")["spec"]
    assert service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"] is False
    pod = objects.pod(f"demo-{process}")
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    numbers = {port["name"]: port["containerPort"] for port in pod["spec"]["containers"][0]["ports"]}
    assert all(port["port"] == numbers[port["name"]] for port in service["ports"]), "a headless Service maps no ports"
    used = [value or "" for value in objects.settings("demo-gateway").values()]
    assert any(f"http://demo-{process}-pods:" in value for value in used)


def test_an_engine_with_two_services_is_scraped_once(chart: Rendered) -> None:
    objects = chart.objects(values_of("trial"))
    wanted = objects.named("ServiceMonitor", "demo-inference-small")["spec"]["selector"]["matchLabels"].items()
    chosen = [one["metadata"]["name"] for one in objects.of("Service") if wanted <= one["metadata"]["labels"].items()]
    assert chosen == ["demo-inference-small"]
