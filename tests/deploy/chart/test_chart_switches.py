"""Autoscaling, monitoring, doors to the outside, and the trainer."""

import ast
import json
import re
from pathlib import Path

import pytest

from tests.deploy.chart.chart_release import CHART, FILES, ROOT, Object, Rendered, Values, changed, values_of

METRICS = ("services/gateway/gateway/metrics.py", "services/inference/inference/metrics.py")
DEMAND = Path(__file__).parent / "golden/engine_demand.promql"
WORDS = {"sum", "max", "by", "queue"}


def metric_names(path: Path) -> set[str]:
    """The names that a metrics module gives to its gauges."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    gauges = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id.lower() == "gauge"]
    return {str(call.args[0].value) for call in gauges if isinstance(call.args[0], ast.Constant)}


def queries(chart: Rendered) -> dict[str, list[str]]:
    objects = chart.objects(values_of("keda")).of("ScaledObject")
    return {
        one["metadata"]["name"]: [trigger["metadata"]["query"] for trigger in one["spec"]["triggers"]]
        for one in objects
    }


def test_scaling_asks_for_metrics_that_the_processes_have(chart: Rendered) -> None:
    known = {name for path in METRICS for name in metric_names(ROOT / path)}
    asked = {
        word
        for found in queries(chart).values()
        for query in found
        for word in re.findall(r"[a-z_]+", re.sub(r"\{.*?\}", "", query))
    }
    assert asked - WORDS == {"job_queue_depth", "job_queue_waiting_seconds"} | {
        f"inference_engine_{name}" for name in ("requests_running", "requests_waiting", "kv_cache_used_ratio")
    }
    assert asked - WORDS <= known


def test_the_worker_scales_on_depth_and_on_the_oldest_wait(chart: Rendered) -> None:
    chosen = '{namespace="memloop",job="worker",pod=~"demo-worker-.+"}'
    assert queries(chart)["demo-worker"] == [
        f"sum(max by (queue) (job_queue_depth{chosen}))",
        f"max(job_queue_waiting_seconds{chosen})",
    ]


def scaler(chart: Rendered, name: str) -> Object:
    return chart.objects(values_of("keda")).named("ScaledObject", name)["spec"]


def test_an_engine_scales_on_all_its_requests_so_that_an_emptied_queue_takes_no_busy_replica(chart: Rendered) -> None:
    chosen = '{namespace="memloop",job="inference",service="demo-inference-main"}'
    requests = [f"sum(inference_engine_requests_{state}{chosen})" for state in ("running", "waiting")]
    triggers = [trigger["metadata"] for trigger in scaler(chart, "demo-inference-main")["triggers"]]
    assert [(one["query"], one["threshold"]) for one in triggers] == [
        (" + ".join(requests), "32"),
        (f"sum(inference_engine_kv_cache_used_ratio{chosen})", "0.7"),
    ]


def demand(chart: Rendered) -> str:
    spec = chart.objects(values_of("scale-to-zero")).named("ScaledObject", "demo-inference-main")["spec"]
    assert (spec["minReplicaCount"], spec["cooldownPeriod"]) == (0, 600)
    queries = [trigger["metadata"]["query"] for trigger in spec["triggers"]]
    assert all(query.endswith("or vector(0)") for query in queries[1:]), "an engine that is gone has no figures"
    return str(queries[0])


def test_jobs_and_requests_bring_an_engine_back_from_zero(chart: Rendered) -> None:
    query = demand(chart)
    assert query.startswith("sum(max by (queue) (job_queue_depth{"), "without figures of the workers the query fails"
    assert query == DEMAND.read_text().strip(), "tests/gateway/test_scale_from_zero.py computes it from real metrics"


@pytest.mark.parametrize("alert", ["EngineAbsent", "EngineUnreachable"])
def test_an_idle_engine_at_zero_raises_no_alert(chart: Rendered, alert: str) -> None:
    def absent(file: str) -> str:
        rules = [rule for one in chart.objects(values_of(file)).of("PrometheusRule") for rule in one["spec"]["groups"]]
        [found] = [rule["expr"] for group in rules for rule in group["rules"] if rule.get("alert") == alert]
        return str(found)

    assert absent("scale-to-zero").endswith('and on () sum(job_queue_depth{namespace="memloop",queue!="webhooks"}) > 0')
    assert "job_queue_depth" not in absent("keda")


def test_engines_leave_one_at_a_time_after_the_need_has_been_lower(chart: Rendered) -> None:
    behavior = scaler(chart, "demo-inference-main")["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior["scaleDown"] == {
        "stabilizationWindowSeconds": 1800,
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 1800}],
    }


@pytest.mark.parametrize(("name", "replicas"), [("demo-inference-main", 4), ("demo-worker", 3)])
def test_without_figures_a_known_number_runs(chart: Rendered, name: str, replicas: int) -> None:
    spec = scaler(chart, name)
    assert spec["fallback"] == {"failureThreshold": 3, "replicas": replicas}
    assert {trigger["metadata"]["ignoreNullValues"] for trigger in spec["triggers"]} == {"false"}
    assert {trigger["metricType"] for trigger in spec["triggers"]} == {"AverageValue"}, "a fallback needs it"


@pytest.mark.parametrize("file", sorted(FILES))
def test_what_is_scaled_has_no_fixed_number_of_replicas_and_one_scaler(chart: Rendered, file: str) -> None:
    objects = chart.objects(values_of(file))
    scalers = [*objects.of("HorizontalPodAutoscaler"), *objects.of("ScaledObject")]
    scaled = [one["spec"]["scaleTargetRef"]["name"] for one in scalers]
    assert len(scaled) == len(set(scaled))
    fixed = {one["metadata"]["name"] for one in objects.of("Deployment") if "replicas" in one["spec"]}
    assert fixed == {one["metadata"]["name"] for one in objects.of("Deployment")} - set(scaled)


def test_monitors_name_jobs_as_every_deployment_does(chart: Rendered) -> None:
    objects = chart.objects(values_of("trial"))
    ends = [end for one in objects.of("ServiceMonitor") for end in one["spec"]["endpoints"]]
    ends += [end for one in objects.of("PodMonitor") for end in one["spec"]["podMetricsEndpoints"]]
    jobs = {end["relabelings"][0]["replacement"] for end in ends}
    assert jobs == {"gateway", "worker", "memory-store", "inference", "engine", "qdrant"}


def test_a_runs_figures_are_served_where_its_pods_share_a_volume(chart: Rendered) -> None:
    objects = chart.objects(values_of("ray-trainer"))
    ray, exporter = objects.pod("demo-trainer-memagent-7b-head")["spec"]["containers"]
    assert exporter["command"][:4] == ["python", "-m", "trainer.metrics_exporter", "/runs/memagent-7b.jsonl"]
    assert {"name": "VERL_FILE_LOGGER_PATH", "value": "/runs/memagent-7b.jsonl"} in ray["env"]
    [end] = objects.named("PodMonitor", "demo-trainer")["spec"]["podMetricsEndpoints"]
    assert end["port"] in [port["name"] for port in exporter["ports"]]


def test_monitors_name_ports_that_there_are(chart: Rendered) -> None:
    objects = chart.objects(values_of("everything"))
    for monitor in objects.of("ServiceMonitor"):
        service = objects.named("Service", monitor["metadata"]["name"])
        names = {port["name"] for port in service["spec"]["ports"]}
        assert {end["port"] for end in monitor["spec"]["endpoints"]} <= names
        assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()


@pytest.mark.parametrize("process", ["gateway", "worker", "memory-store"])
def test_our_processes_are_watched_pod_by_pod_on_the_port_of_metrics(chart: Rendered, process: str) -> None:
    objects = chart.objects(values_of("everything"))
    monitor, pod = objects.named("PodMonitor", f"demo-{process}"), objects.pod(f"demo-{process}")
    [end] = monitor["spec"]["podMetricsEndpoints"]
    [port] = [port for port in pod["spec"]["containers"][0]["ports"] if port["name"] == end["port"]]
    assert port["containerPort"] == 7809
    assert monitor["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


@pytest.mark.parametrize("process", ["gateway", "memory-store"])
def test_no_service_publishes_the_port_of_metrics(chart: Rendered, process: str) -> None:
    service = chart.objects(values_of("everything")).named("Service", f"demo-{process}")
    assert [port["name"] for port in service["spec"]["ports"]] == ["http"]


def test_every_rule_file_is_a_prometheus_rule(chart: Rendered) -> None:
    paths = sorted((CHART / "observability").glob("*.yml"))
    rules = chart.objects(values_of("keda")).of("PrometheusRule")
    assert [one["metadata"]["name"] for one in rules] == [f"demo-{path.stem}" for path in paths]


def test_every_dashboard_is_a_config_map_as_it_stands(chart: Rendered) -> None:
    paths = sorted((CHART / "observability/dashboards").glob("*.json"))
    found = [
        one
        for one in chart.objects(values_of("keda")).of("ConfigMap")
        if one["metadata"]["labels"].get("grafana_dashboard") == "1"
    ]
    assert [json.loads(one["data"][path.name]) for one, path in zip(found, paths, strict=True)] == [
        json.loads(path.read_text()) for path in paths
    ]


@pytest.mark.parametrize("kind", ["Ingress", "HTTPRoute"])
def test_health_and_metrics_are_not_served_to_the_outside(chart: Rendered, kind: str) -> None:
    text = json.dumps(chart.objects(values_of("everything")).of(kind))
    assert "/v1" in text
    assert not re.search(r'"/(metrics|livez|readyz)?"', text)


def test_an_ingress_serves_each_host_with_the_certificate(chart: Rendered) -> None:
    [ingress] = chart.objects(values_of("ingress-tls")).of("Ingress")
    hosts = ["memory.example.com", "memory.example.org"]
    assert ingress["spec"]["tls"] == [{"secretName": "memory-tls", "hosts": hosts}]
    assert [rule["host"] for rule in ingress["spec"]["rules"]] == hosts


@pytest.mark.parametrize(
    ("value", "given", "setting"),
    [
        ("rootPath", "/memloop", {"MEMLOOP_ROOT_PATH": "/memloop"}),
        (
            "corsOrigins",
            ["https://a.example", "http://b:3000"],
            {"MEMLOOP_CORS_ORIGINS": "https://a.example,http://b:3000"},
        ),
        ("userHeaderKeys", ["key_1", "key_2"], {"MEMLOOP_USER_HEADER_KEYS": "key_1,key_2"}),
    ],
)
def test_a_value_for_clients_reaches_the_gateway_alone(
    chart: Rendered, minimal: Values, value: str, given: object, setting: dict[str, str]
) -> None:
    before, after = chart.objects(minimal), chart.objects(changed(minimal, f"gateway.{value}", given))
    assert after.settings("demo-gateway") == before.settings("demo-gateway") | setting
    assert after.settings("demo-worker") == before.settings("demo-worker")


def test_front_ends_name_their_users_by_the_keys_that_may(chart: Rendered, minimal: Values) -> None:
    named = changed(minimal, "gateway.userHeaders", ["X-OpenWebUI-User-Id", "X-User"])
    settings = chart.objects(changed(named, "gateway.userHeaderKeys", ["key_1"])).settings("demo-gateway")
    assert settings["MEMLOOP_USER_HEADERS"] == "X-OpenWebUI-User-Id,X-User"
    assert settings["MEMLOOP_USER_HEADER_KEYS"] == "key_1"


@pytest.mark.parametrize(("kind", "name"), [("Ingress", "ingress-tls"), ("HTTPRoute", "gateway-api")])
def test_a_gateway_below_a_path_is_routed_there(chart: Rendered, kind: str, name: str) -> None:
    [route] = chart.objects(changed(values_of(name), "gateway.rootPath", "/memloop")).of(kind)
    paths = re.findall(r'"(?:path|value)": "(/[^"]*)"', json.dumps(route["spec"]["rules"]))
    assert "/memloop/v1" in paths
    assert all(path.startswith("/memloop/") for path in paths)


def test_the_external_secret_fills_the_secret_that_the_processes_read(chart: Rendered) -> None:
    objects = chart.objects(values_of("external-secrets"))
    [external] = objects.of("ExternalSecret")
    read = {
        entry["valueFrom"]["secretKeyRef"]["name"]
        for _, pod in objects.pods()
        for entry in pod["spec"]["containers"][0].get("env", ())
        if "valueFrom" in entry
    }
    assert read == {external["spec"]["target"]["name"]} == {"demo-secrets"}


def test_gpus_are_split_over_copies_of_the_model(chart: Rendered) -> None:
    objects = chart.objects(values_of("gpu-vllm"))
    settings = objects.settings("demo-inference-reader")
    assert settings["MEMLOOP_SERVE_TENSOR_PARALLEL_SIZE"] == "2"
    assert settings["MEMLOOP_SERVE_DATA_PARALLEL_SIZE"] == "2"
    container = objects.pod("demo-inference-reader")["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"memory": "256Gi", "nvidia.com/gpu": 4}


def test_an_entry_of_models_outdoes_the_defaults_with_nothing_too(chart: Rendered, minimal: Values) -> None:
    tolerated = [{"key": "spot", "operator": "Exists"}]
    defaults = {"servedName": "x", "maxUnavailable": 1, "tolerations": tolerated, "env": {"MEMLOOP_SERVE_SEED": 1}}
    entry: Values = {"name": "a", "model": "M", "servedName": "", "maxSurge": 0, "tolerations": [], "replicas": 2}
    objects = chart.objects(changed(minimal, "inference", {"defaults": defaults, "models": [entry]}))
    settings, pod = objects.settings("demo-inference-a"), objects.pod("demo-inference-a")["spec"]
    assert settings["MEMLOOP_SERVE_NAME"] == "M"
    assert settings["MEMLOOP_SERVE_SEED"] == "1"
    assert "tolerations" not in pod
    strategy = objects.named("Deployment", "demo-inference-a")["spec"]["strategy"]
    assert strategy["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_the_engine_chooses_the_image(chart: Rendered) -> None:
    image = chart.objects(values_of("sglang")).pod("demo-inference-reader")["spec"]["containers"][0]["image"]
    assert image == "registry.example.com/memloop/inference-sglang:0.1.0"


def test_an_engine_on_the_processor_asks_for_no_gpu(chart: Rendered) -> None:
    objects = chart.objects(values_of("cpu"))
    [container] = objects.pod("demo-inference-small")["spec"]["containers"]
    assert container["image"] == "registry.example.com/memloop/inference-cpu:0.1.0"
    assert container["resources"]["limits"] == {"memory": "6Gi"}
    assert objects.settings("demo-inference-small")["MEMLOOP_SERVE_TENSOR_PARALLEL_SIZE"] == "1"


def test_one_model_can_have_slices_of_a_gpu_and_another_one_a_whole_card(chart: Rendered) -> None:
    objects = chart.objects(values_of("mig"))
    limits = [
        objects.pod(f"demo-inference-{name}")["spec"]["containers"][0]["resources"]["limits"]
        for name in ("writer", "reader")
    ]
    assert [{key for key in one if "/" in key} for one in limits] == [{"nvidia.com/mig-3g.40gb"}, {"nvidia.com/gpu"}]


def test_helm_test_runs_the_smoke_test_as_it_stands(chart: Rendered) -> None:
    objects = chart.objects(values_of("trial"))
    [container] = objects.pod("demo-smoke-test")["spec"]["containers"]
    assert container["command"] == ["python", "/smoke/smoke.py"]
    assert objects.settings("demo-smoke-test") == {"MEMLOOP_URL": "http://demo-gateway:7800", "MEMLOOP_API_KEY": None}
    script = objects.named("ConfigMap", "demo-smoke-test")
    assert script["data"]["smoke.py"] == (ROOT / "deploy/smoke.py").read_text()
    assert script["metadata"]["annotations"]["helm.sh/hook"] == "test"


def test_helm_test_asks_for_health_without_a_key(chart: Rendered, minimal: Values) -> None:
    objects = chart.objects(minimal)
    assert "/readyz" in objects.pod("demo-smoke-test")["spec"]["containers"][0]["command"][2]
    assert "demo-smoke-test" not in {one["metadata"]["name"] for one in objects.of("ConfigMap")}


@pytest.mark.parametrize(
    ("gpus", "counted"), [(8, {"num-cpus": "36"}), (1, {"num-cpus": "15"}), (0, {"num-cpus": "32", "num-gpus": "1"})]
)
def test_a_workers_logical_resources_hold_what_verl_packs(chart: Rendered, gpus: int, counted: dict[str, str]) -> None:
    [job] = chart.objects(changed(values_of("ray-trainer"), "trainer.workers.gpus", gpus)).of("RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["workerGroupSpecs"][0]["rayStartParams"] == counted
    assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"


def test_the_run_on_processors_names_nothing_outside_its_claim_and_image(chart: Rendered) -> None:
    [job] = chart.objects(values_of("cpu-trainer")).of("RayJob")
    named = re.findall(r"[= ](/?[\w.-]+/\S+)", job["spec"]["entrypoint"])
    assert len(named) == 4
    assert all(path.startswith(("/runs/", "/home/memloop/recipes/")) for path in named)


def test_the_trainer_runs_on_its_own_cluster_or_on_one_that_is_there(chart: Rendered) -> None:
    [own] = chart.objects(values_of("ray-trainer")).of("RayJob")
    assert own["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["replicas"] == 4
    [shared] = chart.objects(values_of("ray-cluster")).of("RayJob")
    assert shared["spec"]["clusterSelector"] == {"ray.io/cluster": "training"}
    assert "rayClusterSpec" not in shared["spec"]
