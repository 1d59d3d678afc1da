"""Several models: the file that gateway and worker read, its keys and profiles, and what is refused."""

import re
from pathlib import Path
from typing import Any

import helm_python as helm
import pytest

from tests.deploy.chart.chart_release import Objects, Rendered, Values, changed, values_of
from tests.deploy.chart.test_chart_connections import policies, ports

GOLDEN = Path(__file__).parent / "golden/models.toml"
FILE = "/etc/memloop/models/models.toml"
MOUNTED = {"models": "/etc/memloop/models", "profile-0": "/etc/memloop/profiles/0"}


@pytest.fixture
def several() -> Values:
    return values_of("two-models")


def container(objects: Objects, process: str) -> Any:
    return objects.pod(f"demo-{process}")["spec"]["containers"][0]


def test_the_models_file_is_this(chart: Rendered, several: Values) -> None:
    text = chart.objects(several).named("ConfigMap", "demo-models")["data"]["models.toml"]
    assert text == GOLDEN.read_text()


@pytest.mark.parametrize("process", ["gateway", "worker"])
def test_gateway_and_worker_read_the_file_and_no_setting_of_one_model(
    chart: Rendered, several: Values, process: str
) -> None:
    objects = chart.objects(several)
    settings = objects.settings(f"demo-{process}")
    assert settings["MEMLOOP_MODELS"] == FILE
    assert not settings.keys() & {"MEMLOOP_ENGINE_URL", "MEMLOOP_MODEL", "MEMLOOP_INFERENCE_URL"}
    mounts = {mount["name"]: mount["mountPath"] for mount in container(objects, process)["volumeMounts"]}
    assert MOUNTED.items() <= mounts.items()
    volumes = {volume["name"]: volume for volume in objects.pod(f"demo-{process}")["spec"]["volumes"]}
    assert volumes["models"]["configMap"] == {"name": "demo-models"}
    assert volumes["profile-0"]["configMap"] == {"name": "memreader-profile"}


@pytest.mark.parametrize("process", ["gateway", "worker"])
def test_keys_come_from_secrets(chart: Rendered, several: Values, process: str) -> None:
    given = {entry["name"]: entry.get("valueFrom") for entry in container(chart.objects(several), process)["env"]}
    assert given["KEY_OF_MODEL_2"] == {"secretKeyRef": {"name": "openai", "key": "token"}}
    assert given["MEMLOOP_ENGINE_API_KEY"]["secretKeyRef"]["name"] == "memloop-keys"
    named = set(re.findall(r'api_key_env = "(\w+)"', GOLDEN.read_text()))
    assert named <= given.keys()


def test_only_gateway_and_worker_see_the_models(chart: Rendered, several: Values) -> None:
    objects = chart.objects(several)
    mounting = {
        name
        for name, pod in objects.pods()
        for mount in pod["spec"]["containers"][0].get("volumeMounts", ())
        if mount["name"] in MOUNTED
    }
    assert mounting == {"demo-gateway", "demo-worker"}


@pytest.mark.parametrize("process", ["gateway", "worker"])
def test_another_model_restarts_the_pods(chart: Rendered, several: Values, process: str) -> None:
    longer = changed(several, "models", [*several["models"], {"id": "m", "engineUrls": ["http://m/v1"]}])
    before, after = (
        chart.objects(values).pod(f"demo-{process}")["metadata"]["annotations"] for values in (several, longer)
    )
    assert before["checksum/models"] != after["checksum/models"]
    assert before["checksum/config"] == after["checksum/config"]


def test_the_way_to_every_outside_engine_is_open(chart: Rendered, several: Values) -> None:
    for process in ("gateway", "worker"):
        rules = [ports(rule) for rule in policies(chart.objects(several))[process]["egress"]]
        assert [443, 8000] in rules
        assert [7802, 7803] in rules


@pytest.mark.parametrize("process", ["gateway", "worker"])
def test_limits_hold_for_several_models_too(chart: Rendered, several: Values, process: str) -> None:
    objects = chart.objects(changed(several, "limits.requestsPerMinute", 90))
    assert objects.settings(f"demo-{process}")["MEMLOOP_REQUESTS_PER_MINUTE"] == "90"


def test_without_models_nothing_of_them_is_made(chart: Rendered, minimal: Values) -> None:
    objects = chart.objects(minimal)
    assert [one for one in objects.of("ConfigMap") if one["metadata"]["name"] == "demo-models"] == []
    assert "MEMLOOP_MODELS" not in objects.settings("demo-gateway")
    assert "checksum/models" not in objects.pod("demo-gateway")["metadata"]["annotations"]


OTHER = {"id": "m", "engineUrls": ["http://m/v1"]}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("roles.reader", "none", 'roles.reader: models has no id "none", only MemReader-4B-thinking, RL-'),
        ("roles.chat", "", "roles.chat: name one of MemReader-4B-thinking, RL-"),
        ("models", [{"id": "m", "inference": "none"}], 'models: m: inference.models has no name "none", only writer, '),
        ("models", [OTHER, OTHER], "models: an id stands there twice: m, m"),
    ],
    ids=["unknown role", "open role", "unknown engine", "twice"],
)
def test_a_release_that_could_not_start_is_refused(
    chart: Rendered, several: Values, path: str, value: object, message: str
) -> None:
    roles = several if path != "models" else changed(several, "roles", dict.fromkeys(several["roles"], "m"))
    with pytest.raises(helm.HelmRenderError, match=re.escape(message)):
        chart.objects(changed(roles, path, value))


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "m"},
        {"id": "m", "inference": "writer", "engineUrls": ["http://m/v1"]},
        {"id": "m", "engineUrls": ["m:80/v1"]},
        {"id": "a b", "engineUrls": ["http://m/v1"]},
        OTHER | {"windowTokens": 0},
        OTHER | {"dialect": "klingon"},
        OTHER | {"apiKey": "k"},
    ],
    ids=["no engine", "two engines", "relative URL", "id", "window", "dialect", "a key as a value"],
)
def test_a_wrong_entry_is_refused_by_the_schema(chart: Rendered, several: Values, entry: Values) -> None:
    with pytest.raises(helm.HelmValuesError):
        chart.objects(changed(several, "models", [entry]))
