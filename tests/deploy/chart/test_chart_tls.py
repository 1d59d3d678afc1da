"""TLS between the parts: addresses, files, probes without a certificate, and cert-manager's Certificate."""

import helm_python as helm
import pytest

from tests.deploy.chart.chart_release import Object, Objects, Rendered, Values, changed, values_of

FOLDER = "/etc/memloop/tls"
SERVERS = ("memory-store", "inference-main")
CLIENTS = ("gateway", "worker", *SERVERS)


@pytest.fixture
def objects(chart: Rendered) -> Objects:
    return chart.objects(values_of("tls"))


def config_of(objects: Objects, part: str) -> dict[str, str]:
    (found,) = [one for one in objects.of("ConfigMap") if one["metadata"]["name"] == f"demo-{part}"]
    return dict(found["data"])


def pod_of(objects: Objects, part: str) -> Object:
    (found,) = [one for one in objects.of("Deployment") if one["metadata"]["name"] == f"demo-{part}"]
    return found["spec"]["template"]["spec"]


@pytest.mark.parametrize("part", ["gateway", "worker"])
def test_gateway_and_worker_connect_over_tls(objects: Objects, part: str) -> None:
    config = config_of(objects, part)
    assert config["MEMLOOP_STORE_URL"] == "https://demo-memory-store-pods:7801"
    assert config["MEMLOOP_ENGINE_URL"] == "https://demo-inference-main-pods:7803/v1"
    assert config["MEMLOOP_INFERENCE_URL"] == "https://demo-inference-main-pods:7802"


@pytest.mark.parametrize("part", CLIENTS)
def test_every_part_trusts_the_authority_and_shows_a_certificate(objects: Objects, part: str) -> None:
    config, pod = config_of(objects, part), pod_of(objects, part)
    assert config["MEMLOOP_CONNECT_CA"] == f"{FOLDER}/ca.crt"
    assert config["MEMLOOP_CONNECT_CERT"] == f"{FOLDER}/tls.crt"
    assert {"name": "tls", "secret": {"secretName": "demo-tls"}} in pod["volumes"]
    assert {"name": "tls", "mountPath": FOLDER, "readOnly": True} in pod["containers"][0]["volumeMounts"]


@pytest.mark.parametrize("part", SERVERS)
def test_servers_ask_clients_for_a_certificate_and_probes_for_none(objects: Objects, part: str) -> None:
    assert config_of(objects, part)["MEMLOOP_TLS_CLIENT_CA"] == f"{FOLDER}/ca.crt"
    container = pod_of(objects, part)["containers"][0]
    probes = [container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "readiness", "liveness")]
    assert probes == ["metrics"] * 3


def test_the_gateways_port_stays_plain_for_the_ingress_before_it(objects: Objects) -> None:
    assert "MEMLOOP_TLS_CERT" not in config_of(objects, "gateway")
    assert pod_of(objects, "gateway")["containers"][0]["livenessProbe"]["httpGet"]["port"] == "http"


def test_the_certificate_names_every_address_that_is_used(objects: Objects) -> None:
    (certificate,) = objects.of("Certificate")
    spec = certificate["spec"]
    assert spec["secretName"] == "demo-tls"
    assert spec["issuerRef"]["kind"] == "ClusterIssuer"
    assert {"server auth", "client auth"} <= set(spec["usages"])
    assert {f"demo-{part}-pods" for part in SERVERS} <= set(spec["dnsNames"])


def test_a_secret_of_your_own_needs_no_cert_manager(chart: Rendered, minimal: Values) -> None:
    objects = chart.objects(changed(minimal, "tls", {"enabled": True, "secretName": "mine"}))
    assert not objects.of("Certificate")
    assert {"name": "tls", "secret": {"secretName": "mine"}} in pod_of(objects, "worker")["volumes"]


def test_without_tls_nothing_of_it_is_rendered(chart: Rendered, minimal: Values) -> None:
    objects = chart.objects(minimal)
    assert not any(name.startswith(("MEMLOOP_TLS", "MEMLOOP_CONNECT")) for name in config_of(objects, "memory-store"))
    assert config_of(objects, "gateway")["MEMLOOP_STORE_URL"].startswith("http://")


def test_tls_without_a_certificate_is_refused(chart: Rendered, minimal: Values) -> None:
    with pytest.raises(helm.HelmRenderError, match=r"tls.enabled needs tls.secretName"):
        chart.objects(changed(minimal, "tls", {"enabled": True}))


def test_a_promotion_beside_tls_is_refused(chart: Rendered) -> None:
    values = changed(values_of("promotion"), "tls", {"enabled": True, "secretName": "mine"})
    with pytest.raises(helm.HelmRenderError, match="the promotion Job shows no certificate"):
        chart.objects(values)
