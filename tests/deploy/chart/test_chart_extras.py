"""What users add to pods, whose priority is whose, and what the platform decides about users and groups."""

import shlex
from typing import Any

import pytest

from tests.deploy.chart.chart_release import Objects, Rendered, Values, changed, values_of

PARTS = {
    "gateway": "demo-gateway",
    "worker": "demo-worker",
    "memoryStore": "demo-memory-store",
    "inference.defaults": "demo-inference-main",
    "redis": "demo-redis",
    "qdrant": "demo-qdrant",
    "smokeTest": "demo-smoke-test",
    "backup": "demo-backup",
    "trainer.head": "demo-trainer-run-1-head",
    "trainer.workers": "demo-trainer-run-1-workers",
}
VOLUME = {"name": "certificates", "secret": {"secretName": "company"}}
MOUNT = {"name": "certificates", "mountPath": "/certificates", "readOnly": True}


def container(objects: Objects, owner: str) -> Any:
    return objects.pod(owner)["spec"]["containers"][0]


@pytest.mark.parametrize("part", PARTS)
def test_a_variable_a_volume_and_labels_can_be_added_to_every_pod(chart: Rendered, part: str) -> None:
    values = values_of("everything")
    added: dict[str, object] = {
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "extraVolumes": [VOLUME],
        "extraVolumeMounts": [MOUNT],
        "podLabels": {"team": "memory"},
        "podAnnotations": {"note": "ours"},
    }
    for name, value in added.items():
        values = changed(values, f"{part}.{name}", value)
    objects = chart.objects(values)
    pod, first = objects.pod(PARTS[part]), container(objects, PARTS[part])
    assert {"name": "HTTPS_PROXY", "value": "http://proxy:3128"} in first["env"]
    assert VOLUME in pod["spec"]["volumes"]
    assert MOUNT in first["volumeMounts"]
    assert pod["metadata"]["labels"]["team"] == "memory"
    assert pod["metadata"]["annotations"]["note"] == "ours"


@pytest.mark.parametrize("part", PARTS)
def test_init_containers_of_every_pod_are_confined(chart: Rendered, part: str) -> None:
    fetch = {"name": "fetch", "image": "registry.example.com/fetch:1", "command": ["fetch"]}
    objects = chart.objects(changed(values_of("everything"), f"{part}.initContainers", [fetch]))
    [made] = objects.pod(PARTS[part])["spec"]["initContainers"]
    assert fetch.items() <= made.items()
    assert made["securityContext"] == container(objects, PARTS[part])["securityContext"]


def test_an_init_container_may_be_confined_otherwise(chart: Rendered, minimal: Values) -> None:
    writes = {"name": "fetch", "image": "fetch:1", "securityContext": {"readOnlyRootFilesystem": False}}
    objects = chart.objects(changed(minimal, "gateway.initContainers", [writes]))
    [made] = objects.pod("demo-gateway")["spec"]["initContainers"]
    assert made["securityContext"]["readOnlyRootFilesystem"] is False
    assert made["securityContext"]["allowPrivilegeEscalation"] is False


@pytest.mark.parametrize("part", ["redis", "qdrant", "trainer.head", "smokeTest"])
def test_databases_and_the_trainers_head_can_be_placed(chart: Rendered, part: str) -> None:
    values = changed(values_of("everything"), f"{part}.nodeSelector", {"pool": "data"})
    values = changed(values, f"{part}.tolerations", [{"key": "data", "operator": "Exists"}])
    spec = chart.objects(values).pod(PARTS[part])["spec"]
    assert spec["nodeSelector"] == {"pool": "data"}
    assert spec["tolerations"] == [{"key": "data", "operator": "Exists"}]


def test_the_engine_gets_its_extra_arguments_word_for_word(chart: Rendered, minimal: Values) -> None:
    words = ["--hf-overrides", '{"rope_scaling": {"factor": 4.0}}', "--note", 'it\'s \\ "quoted" $HOME']
    objects = chart.objects(changed(minimal, "inference.defaults.extraArgs", words))
    assert shlex.split(objects.settings("demo-inference-main")["MEMLOOP_SERVE_EXTRA_ARGS"] or "") == words


def priorities(objects: Objects) -> dict[str, str | None]:
    return {owner: pod["spec"].get("priorityClassName") for owner, pod in objects.pods()}


def test_training_yields_to_pods_that_answer_requests(chart: Rendered) -> None:
    objects = chart.objects(values_of("kueue-trainer"))
    classes = {one["metadata"]["name"]: one for one in objects.of("PriorityClass")}
    used = priorities(objects)
    serving, training = classes[str(used["demo-gateway"])], classes[str(used["demo-trainer-memreader-4b-workers"])]
    assert serving["value"] > 0 > training["value"]
    assert training["preemptionPolicy"] == "Never"
    assert set(used.values()) == set(classes)


def test_a_pods_own_priority_class_wins(chart: Rendered) -> None:
    values = changed(values_of("kueue-trainer"), "worker.priorityClassName", "background")
    assert priorities(chart.objects(values))["demo-worker"] == "background"


def test_without_classes_of_the_release_no_pod_names_one(chart: Rendered, minimal: Values) -> None:
    assert set(priorities(chart.objects(minimal)).values()) == {None}


def test_classes_of_two_namespaces_have_two_names(chart: Rendered) -> None:
    names = {one["metadata"]["name"] for one in chart.objects(values_of("kueue-trainer")).of("PriorityClass")}
    assert names == {"memloop-demo-serving", "memloop-demo-training"}


def test_the_platform_may_choose_user_and_groups(chart: Rendered, minimal: Values) -> None:
    left = {"runAsUser": 0, "runAsGroup": 0, "fsGroup": 0}
    for _, pod in chart.objects(minimal | {"podSecurity": left}).pods():
        assert not left.keys() & pod["spec"]["securityContext"].keys()
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True


def test_relative_folders_of_a_recipe_are_on_the_volume_of_runs(chart: Rendered) -> None:
    objects = chart.objects(values_of("ray-trainer"))
    for group in ("head", "workers"):
        first = container(objects, f"demo-trainer-memagent-7b-{group}")
        assert first["workingDir"] == "/runs"
        assert {"name": "runs", "mountPath": "/runs"} in first["volumeMounts"]


def test_the_trainer_trusts_the_companys_authorities(chart: Rendered) -> None:
    first = container(chart.objects(values_of("kueue-trainer")), "demo-trainer-memreader-4b-workers")
    given = {entry["name"]: entry.get("value") for entry in first["env"]}
    assert given["SSL_CERT_FILE"] == given["REQUESTS_CA_BUNDLE"] == "/etc/memloop/ca/ca-certificates.crt"


def test_kueue_decides_when_a_run_starts(chart: Rendered) -> None:
    [job] = chart.objects(values_of("kueue-trainer")).of("RayJob")
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "training"
    assert "suspend" not in job["spec"]


def test_a_finished_run_frees_its_gpus_within_minutes(chart: Rendered) -> None:
    [job] = chart.objects(values_of("ray-trainer")).of("RayJob")
    assert job["spec"]["shutdownAfterJobFinishes"] is True
    assert job["spec"]["ttlSecondsAfterFinished"] <= 120


def test_the_trainers_account_can_have_a_role_of_the_cloud(chart: Rendered) -> None:
    account = chart.objects(values_of("kueue-trainer")).named("ServiceAccount", "demo-trainer")
    assert "eks.amazonaws.com/role-arn" in account["metadata"]["annotations"]
