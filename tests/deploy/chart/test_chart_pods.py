"""What runs, and how: restricted, with the settings that its process reads, drained before it ends."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.chart.chart_release import CHART, FILES, ROOT, Object, Objects, Rendered, Values, changed, values_of

SETTINGS = {
    "gateway": ("services/gateway/gateway/settings.py", "GatewaySettings"),
    "worker": ("services/gateway/gateway/settings.py", "WorkerSettings"),
    "memory-store": ("services/memory-store/memory_store/settings.py", "Settings"),
    "inference": ("services/inference/inference/settings.py", "LauncherSettings"),
}
SHARED = Path("packages/memloop-service/memloop_service/settings.py")
CAPABILITIES = {"drop": ["ALL"]}
CONTAINERS = ("initContainers", "containers")


def every_pod(chart: Rendered) -> Iterator[tuple[str, str, Object]]:
    """File of values, owner, pod."""
    for name in sorted(FILES):
        for owner, pod in chart.objects(values_of(name)).pods():
            yield name, owner, pod


def fields_of(path: Path, wanted: str) -> set[str]:
    """The names, as environment variables, of the fields of a settings class and its bases in the same file."""
    classes = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)}
    found: set[str] = set()
    for base in classes[wanted].bases:
        if isinstance(base, ast.Name) and base.id in classes:
            found |= fields_of(path, base.id)
    for node in classes[wanted].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            alias = re.search(r"AliasChoices\('(\w+)'\)", ast.unparse(node))
            found.add(alias[1] if alias else f"MEMLOOP_{node.target.id.upper()}")
    return found


def read_by(process: str) -> set[str]:
    path, name = SETTINGS[process]
    return fields_of(ROOT / path, name) | fields_of(ROOT / SHARED, "ServiceSettings")


def test_every_pod_fits_the_restricted_standard(chart: Rendered) -> None:
    for name, owner, pod in every_pod(chart):
        spec = pod["spec"]
        where = f"{owner} of {name}"
        assert spec["securityContext"]["runAsNonRoot"] is True, where
        assert spec["securityContext"].get("runAsUser", 10001) >= 10000, where
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, where
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), where
        for container in [*spec.get("initContainers", ()), *spec["containers"]]:
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False, where
            assert security["readOnlyRootFilesystem"] is True, where
            assert security["capabilities"] == CAPABILITIES, where
            assert "privileged" not in security, where
        kinds = {next(iter(set(volume) - {"name"})) for volume in spec.get("volumes", ())}
        assert kinds <= {"emptyDir", "ephemeral", "persistentVolumeClaim", "configMap", "secret"}, where


def test_no_pod_has_a_token(chart: Rendered) -> None:
    for name, owner, pod in every_pod(chart):
        assert pod["spec"]["automountServiceAccountToken"] is False, f"{owner} of {name}"
    for name in FILES:
        assert all(
            one["automountServiceAccountToken"] is False for one in chart.objects(values_of(name)).of("ServiceAccount")
        )


def test_every_pod_has_an_account_that_is_made(chart: Rendered) -> None:
    for name in FILES:
        objects = chart.objects(values_of(name))
        accounts = {one["metadata"]["name"] for one in objects.of("ServiceAccount")}
        wanted = {pod["spec"].get("serviceAccountName") for owner, pod in objects.pods() if owner != "demo-smoke-test"}
        assert wanted <= accounts


def test_every_container_sets_its_memory_request_and_limit(chart: Rendered) -> None:
    for name, owner, pod in every_pod(chart):
        for container in pod["spec"]["containers"]:
            assert {"requests", "limits"} <= set(container["resources"]), f"{owner} of {name}"
            assert "memory" in container["resources"]["limits"], f"{owner} of {name}"


def test_no_object_is_a_secret_and_no_setting_holds_one(chart: Rendered) -> None:
    for name in FILES:
        objects = chart.objects(values_of(name))
        assert objects.of("Secret") == []
        data = {key: value for one in objects.of("ConfigMap") for key, value in one["data"].items()}
        named = {key for key in data if re.search("KEY|SECRET|PASSWORD|TOKEN(?!S_PER_MINUTE$)|REDIS_URL", key)}
        assert {key for key in named if not data[key].startswith("/")} == set(), "a path names a file, it is no secret"


@pytest.mark.parametrize("process", SETTINGS)
def test_every_setting_is_one_that_its_process_reads(chart: Rendered, process: str) -> None:
    known = read_by(process)
    seen: set[str] = set()
    for name in sorted(FILES):
        objects = chart.objects(values_of(name))
        for owner, pod in objects.pods():
            if pod["metadata"]["labels"]["app.kubernetes.io/component"] == process:
                seen |= {key for key in objects.settings(owner) if key.startswith(("MEMLOOP_", "QDRANT_"))}
    assert len(seen) > 2
    assert seen - known == set()


def test_the_names_of_settings_are_read_from_the_classes() -> None:
    assert {"MEMLOOP_STOP_WAIT_S", "MEMLOOP_REDIS_URL", "MEMLOOP_LOG_LEVEL"} <= read_by("worker")
    assert "MEMLOOP_STOP_WAIT_S" not in read_by("gateway")
    assert {"QDRANT_URL", "QDRANT_API_KEY"} <= read_by("memory-store")


@pytest.mark.parametrize("process", ["gateway", "worker", "memory-store", "inference-main"])
def test_a_changed_setting_rolls_the_pods_of_its_process_alone(chart: Rendered, minimal: Values, process: str) -> None:
    path = {"memory-store": "memoryStore", "inference-main": "inference.defaults"}.get(process, process)
    name = "MEMLOOP_SERVE_SEED" if process == "inference-main" else "MEMLOOP_LOG_LEVEL"
    before = dict(chart.objects(minimal).pods())
    after = dict(chart.objects(changed(minimal, f"{path}.env", {name: "1"})).pods())
    assert [owner for owner in before if before[owner] != after[owner]] == [f"demo-{process}"]


@pytest.mark.parametrize(
    ("key", "readers"),
    [
        ("MEMLOOP_API_KEYS", {"gateway"}),
        ("MEMLOOP_STORE_KEY", {"gateway", "worker", "memory-store"}),
        ("MEMLOOP_ENGINE_API_KEY", {"gateway", "worker", "inference-small"}),
        ("MEMLOOP_WEBHOOK_SECRET", {"gateway", "worker"}),
        ("REDIS_PASSWORD", {"gateway", "worker", "memory-store", "redis"}),
        ("QDRANT_API_KEY", {"memory-store", "qdrant"}),
        ("QDRANT_READ_KEY", {"qdrant"}),
    ],
)
def test_a_new_revision_of_a_secret_rolls_its_readers_alone(chart: Rendered, key: str, readers: set[str]) -> None:
    trial = values_of("trial")
    before = dict(chart.objects(trial).pods())
    after = dict(chart.objects(changed(trial, "secrets.revisions", {key: "2"})).pods())
    rolled = {owner.removeprefix("demo-") for owner in before if before[owner] != after[owner]}
    assert rolled == readers


def test_a_new_version_of_the_chart_alone_rolls_nothing(chart: Rendered, minimal: Values) -> None:
    for _, pod in chart.objects(minimal).pods():
        labels = pod["metadata"]["labels"]
        assert "helm.sh/chart" not in labels or labels["app.kubernetes.io/component"] == "smoke-test"


def test_a_rollout_never_takes_a_pod_away_before_its_successor_is_ready(chart: Rendered, minimal: Values) -> None:
    for one in chart.objects(changed(minimal, "inference.defaults.replicas", 2)).of("Deployment"):
        assert one["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def grace_s(objects: Objects, name: str) -> int:
    """What Kubernetes waits until it kills."""
    return objects.pod(name)["spec"]["terminationGracePeriodSeconds"]


@pytest.mark.parametrize(("process", "path"), [("gateway", "gateway"), ("memory-store", "memoryStore")])
def test_a_server_is_given_longer_than_its_own_drain(chart: Rendered, minimal: Values, process: str, path: str) -> None:
    objects = chart.objects(changed(minimal, path, {"drainSeconds": 20, "stopGraceSeconds": 600}))
    settings = objects.settings(f"demo-{process}")
    assert (settings["MEMLOOP_DRAIN_S"], settings["MEMLOOP_STOP_GRACE_S"]) == ("20", "600")
    assert grace_s(objects, f"demo-{process}") >= 20 + 600 + 10


@pytest.mark.parametrize("process", ["gateway", "memory-store"])
def test_a_server_keeps_serving_until_load_balancers_drop_it(chart: Rendered, minimal: Values, process: str) -> None:
    assert float(chart.objects(minimal).settings(f"demo-{process}")["MEMLOOP_DRAIN_S"] or 0) >= 5


@pytest.mark.parametrize("wait_s", [10, 600])
def test_a_worker_is_given_longer_than_its_jobs(chart: Rendered, minimal: Values, wait_s: int) -> None:
    objects = chart.objects(changed(minimal, "worker.stopWaitSeconds", wait_s))
    assert objects.settings("demo-worker")["MEMLOOP_STOP_WAIT_S"] == str(wait_s)
    assert grace_s(objects, "demo-worker") >= wait_s + default_of("stop_grace_s") + 10


def default_of(field: str) -> float:
    """What a setting that all processes have is when nobody sets it."""
    found = re.search(rf"^    {field}: .*Field\(default=([\d.]+)", (ROOT / SHARED).read_text(), re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_an_engine_is_given_twice_its_stop_time_and_some(chart: Rendered, minimal: Values) -> None:
    objects = chart.objects(changed(minimal, "inference.defaults", {"stopTimeoutSeconds": 300, "drainSeconds": 15}))
    assert objects.settings("demo-inference-main")["MEMLOOP_DRAIN_S"] == "15"
    assert objects.settings("demo-inference-main")["MEMLOOP_SERVE_STOP_TIMEOUT_S"] == "300"
    assert grace_s(objects, "demo-inference-main") >= 15 + 2 * 300 + 10


def probe_s(probe: dict[str, Any]) -> int:
    return probe["periodSeconds"] * probe["failureThreshold"]


def test_an_engine_may_take_its_whole_start_time(chart: Rendered, minimal: Values) -> None:
    objects = chart.objects(changed(minimal, "inference.defaults", {"startTimeoutSeconds": 7200}))
    container = objects.pod("demo-inference-main")["spec"]["containers"][0]
    assert objects.settings("demo-inference-main")["MEMLOOP_SERVE_START_TIMEOUT_S"] == "7200"
    assert probe_s(container["startupProbe"]) > 7200
    assert objects.named("Deployment", "demo-inference-main")["spec"]["progressDeadlineSeconds"] > 7200


@pytest.mark.parametrize("process", ["gateway", "worker"])
def test_gateway_and_worker_may_wait_for_the_engine(chart: Rendered, minimal: Values, process: str) -> None:
    objects = chart.objects(changed(minimal, "engine.startupWaitSeconds", 5000))
    assert objects.settings(f"demo-{process}")["MEMLOOP_STARTUP_WAIT_S"] == "5000"
    assert probe_s(objects.pod(f"demo-{process}")["spec"]["containers"][0]["startupProbe"]) > 5000


@pytest.mark.parametrize("process", ["gateway", "worker"])
def test_a_gateway_beside_an_engine_that_loads_for_an_hour_serves_memory_in_minutes(
    chart: Rendered, process: str
) -> None:
    objects = chart.objects(values_of("gpu-vllm"))
    engine = objects.pod("demo-inference-reader")["spec"]["containers"][0]
    wait_s = float(objects.settings(f"demo-{process}")["MEMLOOP_STARTUP_WAIT_S"] or 0)
    assert probe_s(engine["startupProbe"]) > 3600 > 300 >= wait_s
    assert probe_s(objects.pod(f"demo-{process}")["spec"]["containers"][0]["startupProbe"]) > wait_s


@pytest.mark.parametrize("process", ["gateway", "worker", "memory-store"])
def test_a_lost_dependency_stops_a_rollout_but_takes_no_running_pod_out(
    chart: Rendered, minimal: Values, process: str
) -> None:
    container = chart.objects(minimal).pod(f"demo-{process}")["spec"]["containers"][0]
    paths = [container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "readiness", "liveness")]
    assert paths == ["/readyz", "/livez", "/livez"]


def resource_paths(node: Values, above: str = "") -> Iterator[str]:
    """The dotted path of each value that holds a container's requests and limits."""
    for key, value in node.items():
        if isinstance(value, dict):
            path = f"{above}{key}"
            yield from [path] if key.lower().endswith("resources") else resource_paths(value, f"{path}.")


@pytest.mark.parametrize("name", ["everything", "backup", "promotion", "ray-trainer"])
def test_every_container_can_have_the_cpu_limit_that_a_quota_asks_for(chart: Rendered, name: str) -> None:
    values = values_of(name)
    for path in resource_paths(yaml.safe_load((CHART / "values.yaml").read_text())):
        values = changed(values, f"{path}.limits.cpu", "2")
    pods = chart.objects(values).pods()
    containers = [(owner, one) for owner, pod in pods for kind in CONTAINERS for one in pod["spec"].get(kind, ())]
    assert [(owner, one["name"]) for owner, one in containers if "cpu" not in one["resources"].get("limits", {})] == []


def test_a_digest_pins_each_image_of_each_container(chart: Rendered) -> None:
    values = values_of("everything")
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())["images"]
    digests = {name: f"sha256:{number:064x}" for number, name in enumerate(defaults, start=1)}
    for name, digest in digests.items():
        values = changed(values, f"images.{name}.digest", digest)
    found = set[str]()
    for _, pod in chart.objects(values).pods():
        found |= {part["image"] for kind in CONTAINERS for part in pod["spec"].get(kind, ())}
    assert found
    assert all(image.partition("@")[2] in digests.values() for image in found), found
    assert {name for name, digest in digests.items() if any(digest in image for image in found)} >= {
        "gateway",
        "memoryStore",
        "trainerGpu",
        "redis",
        "qdrant",
    }
