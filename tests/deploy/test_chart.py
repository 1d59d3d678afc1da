"""The Helm chart, rendered by Helm and checked against the Kubernetes schemas."""

from pathlib import Path

import helm_python as helm
import kubernetes_validate
import pytest
import yaml

NEEDED = {"redisUrl": "redis://redis:6379/0", "qdrantUrl": "http://qdrant:6333", "existingSecret": "memloop-keys"}
EXTERNAL_ENGINE = {"inference": {"enabled": False, "engineUrl": "https://engine.example/v1"}}
CLAIM = {"storage": {"existingClaim": "documents"}}


def rendered(root: Path, values: dict) -> list[dict]:
    with helm.Chart.load(str(root / "deploy/helm/memloop")) as chart:
        files = chart.render(values, name="demo", namespace="memloop")
    texts = [text for name, text in files.items() if name.endswith(".yaml")]
    return [document for text in texts for document in yaml.safe_load_all(text) if document]


def containers(documents: list[dict]) -> dict[str, dict]:
    pods = [document["spec"]["template"]["spec"] for document in documents if "template" in document["spec"]]
    return {pod["containers"][0]["name"]: pod["containers"][0] for pod in pods}


def environment(container: dict) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container["env"]}


def test_lint_finds_no_error(root: Path) -> None:
    assert helm.lint(str(root / "deploy/helm/memloop"), values=NEEDED)["errors"] == []


@pytest.mark.parametrize("version", ["1.28", "1.31", "1.33"])
@pytest.mark.parametrize("extra", [{}, EXTERNAL_ENGINE, CLAIM], ids=["own-engine", "external-engine", "claim"])
def test_every_object_is_valid_for_kubernetes(root: Path, extra: dict, version: str) -> None:
    documents = rendered(root, NEEDED | extra)
    assert documents
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)


def test_an_external_engine_replaces_the_own_one(root: Path) -> None:
    parts = containers(rendered(root, NEEDED | EXTERNAL_ENGINE))
    assert set(parts) == {"gateway", "worker", "memory-store"}
    assert environment(parts["worker"])["MEMLOOP_ENGINE_URL"] == "https://engine.example/v1"


def test_gateway_and_worker_reach_the_releases_own_services(root: Path) -> None:
    parts = containers(rendered(root, NEEDED))
    for name in ("gateway", "worker"):
        assert environment(parts[name])["MEMLOOP_STORE_URL"] == "http://demo-memory-store:7801"
        assert environment(parts[name])["MEMLOOP_INFERENCE_URL"] == "http://demo-inference:7802"


def test_the_engines_pod_is_given_twice_its_stop_timeout_and_some(root: Path) -> None:
    documents = rendered(root, NEEDED | {"inference": {"stopTimeoutSeconds": 300}})
    pod = next(document["spec"]["template"]["spec"] for document in documents if document["kind"] == "StatefulSet")
    assert environment(pod["containers"][0])["MEMLOOP_SERVE_STOP_TIMEOUT_S"] == "300"
    assert pod["terminationGracePeriodSeconds"] == 620


def test_our_processes_run_without_root_and_with_a_read_only_root(root: Path) -> None:
    for document in rendered(root, NEEDED):
        if document["kind"] == "Deployment":
            pod = document["spec"]["template"]["spec"]
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({}, "existingSecret"),
        (NEEDED | {"redisUrl": "redis.example"}, "redisUrl"),
        (NEEDED | {"gatewy": {}}, "additional properties"),
        (NEEDED | {"inference": {"enabled": False}}, "inference.engineUrl is needed"),
    ],
    ids=["nothing-given", "no-redis-scheme", "misspelt", "no-engine"],
)
def test_wrong_values_are_refused_with_the_reason(root: Path, values: dict, complaint: str) -> None:
    with pytest.raises(helm.HelmError, match=complaint):
        rendered(root, values)


@pytest.mark.parametrize("process", ["gateway", "worker"])
def test_gateway_and_worker_share_one_storage_or_have_none(root: Path, process: str) -> None:
    urls = {
        name: environment(containers(rendered(root, NEEDED | extra))[process]).get("MEMLOOP_STORAGE_URL")
        for name, extra in {"none": {}, "claim": CLAIM, "bucket": {"storage": {"url": "s3://b/p"}}}.items()
    }
    assert urls == {"none": None, "claim": "file:///data", "bucket": "s3://b/p"}
    mounts = containers(rendered(root, NEEDED | CLAIM))[process]["volumeMounts"]
    assert {"name": "documents", "mountPath": "/data"} in mounts
