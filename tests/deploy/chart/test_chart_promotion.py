"""A checkpoint on its way in the chart: fetched into the cache, gated, and given a share of the requests."""

from typing import Any

import helm_python as helm
import pytest

from tests.deploy.chart.chart_release import Object, Rendered, changed, values_of
from tests.deploy.chart.test_chart_connections import inner_flows

VALUES = values_of("promotion")


@pytest.fixture
def pod(chart: Rendered) -> Object:
    return chart.objects(VALUES).named("Job", "demo-promotion-reader-step-40")["spec"]["template"]["spec"]


def options(pod: Object) -> dict[str, str]:
    [container] = pod["containers"]
    given = container["args"]
    return dict(each.split("=", 1) for each in given if "=" in each)


def test_no_promotion_runs_unless_asked_for(chart: Rendered, minimal: dict[str, Any]) -> None:
    assert chart.objects(minimal).of("Job") == []


def test_the_job_runs_the_command_on_the_gateway_and_both_launchers(pod: Object) -> None:
    given = options(pod)
    assert pod["containers"][0]["command"] == ["python", "-m", "trainer", "promote"]
    assert given["--gateway"] == "http://demo-gateway:7800"
    assert given["--inference"] == "http://demo-inference-reader-next-pods:7802"
    assert given["--incumbent-inference"] == "http://demo-inference-reader-pods:7802"
    assert (given["--incumbent"], given["--name"], given["--stages"]) == ("reader", "reader-next", "0.1,0.5")
    assert given["--out"] == "/data/gates/reader-step-40"
    assert pod["containers"][0]["args"][-2:] == ["--margin", "0.02"]


def test_a_refused_candidate_is_not_tried_again(chart: Rendered) -> None:
    assert chart.objects(VALUES).named("Job", "demo-promotion-reader-step-40")["spec"]["backoffLimit"] == 0


def test_engine_and_job_fetch_the_same_checkpoint(chart: Rendered, pod: Object) -> None:
    engine = chart.objects(VALUES).named("Deployment", "demo-inference-reader-next")["spec"]["template"]["spec"]
    fetches = [each["initContainers"][0] for each in (engine, pod)]
    assert [fetch["command"][4] for fetch in fetches] == ["s3://models/reader/step-40"] * 2
    assert [fetch["command"][5] for fetch in fetches] == ["/cache/models/reader-step-40", "/cache/candidate"]
    assert all(fetch["envFrom"] == [{"secretRef": {"name": "bucket-keys"}}] for fetch in fetches)
    assert all({"name": "AWS_REGION", "value": "eu-central-1"} in fetch["env"] for fetch in fetches)
    assert all(fetch["securityContext"]["readOnlyRootFilesystem"] for fetch in fetches)
    settings = chart.objects(VALUES).named("ConfigMap", "demo-inference-reader-next")["data"]
    assert settings["MEMLOOP_MODEL_PATH"] == "/cache/models/reader-step-40"


def test_the_engines_service_account_may_have_a_role_for_the_bucket(chart: Rendered) -> None:
    account = chart.objects(VALUES).named("ServiceAccount", "demo-inference")
    assert "eks.amazonaws.com/role-arn" in account["metadata"]["annotations"]


def test_it_reaches_the_gateway_and_the_engines_and_nothing_else_inside(chart: Rendered) -> None:
    objects = chart.objects(VALUES)
    reached = {flow for flow in inner_flows(objects, "egress") if flow[0] == "promotion"}
    assert reached == {
        ("promotion", "gateway", 7800),
        ("promotion", "inference", 7802),
        ("promotion", "inference", 7803),
    }
    assert reached <= inner_flows(objects, "ingress")


def test_the_keys_come_from_secrets(pod: Object) -> None:
    env = {
        entry["name"]: entry["valueFrom"]["secretKeyRef"]
        for entry in pod["containers"][0]["env"]
        if "valueFrom" in entry
    }
    assert env["MEMLOOP_ADMIN_KEY"] == env["MEMLOOP_API_KEY"] == {"name": "operator-key", "key": "api-key"}
    assert env["MEMLOOP_ENGINE_API_KEY"]["name"] == "memloop-keys"


@pytest.mark.parametrize(
    ("path", "new", "message"),
    [
        ("promotion.candidate", "nobody", "models has no id"),
        ("promotion.incumbent", "nobody", "models has no id"),
        ("promotion.candidate", "reader", "needs a modelUrl"),
        ("promotion.dataClaim", "", "promotion.dataClaim is needed"),
        ("promotion.keySecret.name", "", "promotion.keySecret.name is needed"),
        ("promotion.stages", [0.5, 1], "stages"),
        ("promotion.runId", "Run_1", "runId"),
    ],
)
def test_wrong_values_are_refused_with_a_reason(chart: Rendered, path: str, new: object, message: str) -> None:
    with pytest.raises(helm.HelmError, match=message):
        chart.objects(changed(VALUES, path, new))


def test_a_checkpoint_is_fetched_below_the_cache_only(chart: Rendered) -> None:
    model = {**VALUES["inference"]["models"][1], "modelPath": "/tmp/model"}
    values = changed(VALUES, "inference.models", [VALUES["inference"]["models"][0], model])
    with pytest.raises(helm.HelmError, match="name a folder below /cache"):
        chart.objects(values)


@pytest.mark.parametrize(("gpus", "image"), [(8, "memloop/trainer-gpu"), (0, "memloop/trainer")])
def test_a_run_with_gpus_has_the_image_with_verls_engine(chart: Rendered, gpus: int, image: str) -> None:
    values = changed(values_of("ray-trainer"), "trainer.workers.gpus", gpus)
    [job] = chart.objects(values).of("RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    pods = [cluster["headGroupSpec"]["template"], cluster["workerGroupSpecs"][0]["template"]]
    images = {
        container["image"].partition("/")[2].partition(":")[0]
        for pod in pods
        for container in pod["spec"]["containers"]
    }
    assert images == {image}
