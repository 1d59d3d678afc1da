"""tests/kubernetes, run with real Helm against a stand-in of a cluster: it passes, and it finds what is wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.kubernetes.conftest import StandIn
from tests.deploy.kubernetes.kube_objects import Refusal
from tests.kubernetes.api import Api, ApiRefused, Object
from tests.kubernetes.cluster import RESTRICTED, Cluster
from tests.kubernetes.crds import KINDS, definition
from tests.kubernetes.load import Load
from tests.kubernetes.pods import client_pod
from tests.kubernetes.settings import ClusterSettings, SettingsRefused
from tests.kubernetes.table import Table

ROOT = Path(__file__).parents[3]


def run(kubeconfig: str, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pytest", "-c", "tests/kubernetes/pytest.ini", "--rootdir=.", *arguments]
    given = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    environment = {**given, "KUBECONFIG": kubeconfig, **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)


def test_the_release_is_installed_replaced_killed_and_restored(stand_in: StandIn, tmp_path: Path) -> None:
    chosen = "install or engines or backup or rollouts or (kills and redis) or (values and (external_engine or mig))"
    disks = {"KUBE_STORAGE_CLASS": "local", "KUBE_VOLUMES": str(tmp_path / "disks")}
    done = run(str(stand_in.kubeconfig), "-k", chosen.replace("external_engine", "external-engine"), "-x", **disks)
    assert done.returncode == 0, done.stdout + done.stderr
    for figure in ("all 9 checks hold", "memories are back, once each", "0 lost", "4 pods, 0 refused"):
        assert figure in done.stdout
    assert leftovers(stand_in) == []
    assert list((tmp_path / "disks").iterdir()) == []


def leftovers(stand_in: StandIn) -> list[str]:
    """What is on the cluster and was not there before."""
    found = [f"{key[1]} {key[3]}" for key in stand_in.api.objects.objects if key[1] != "nodes"]
    return found + [f"node with {name}" for name in node(stand_in) if name != "cpu"]


def node(stand_in: StandIn) -> Object:
    return stand_in.api.objects.get(("v1", "nodes", "", "node1"))["status"]["allocatable"]


def test_an_install_that_fails_leaves_nothing(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.api.objects.refused = "Deployment"
    disks = {"KUBE_STORAGE_CLASS": "local", "KUBE_VOLUMES": str(tmp_path / "disks")}
    done = run(str(stand_in.kubeconfig), "-k", "every_pod", **disks)
    assert done.returncode == 1
    assert "Deployment is refused" in done.stdout
    assert leftovers(stand_in) == []


def test_the_charts_test_passes_where_nobody_may_read_logs(stand_in: StandIn) -> None:
    stand_in.api.logs = _no_logs
    done = run(str(stand_in.kubeconfig), "-k", "install")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed; its log cannot be read" in done.stdout


def _no_logs(pod: str) -> str:
    raise Refusal(500, "InternalError", "dial tcp: lookup node1: no such host")


def test_an_acknowledged_write_that_is_lost_fails_the_run(stand_in: StandIn) -> None:
    stand_in.machines.gateway.loses = True
    done = run(str(stand_in.kubeconfig), "-k", "kills and worker", "-x")
    assert done.returncode == 1
    assert "The locker code of write-" in done.stdout
    assert ", 0 lost" not in done.stdout


def test_an_acknowledged_write_that_was_only_queued_is_waited_for(stand_in: StandIn) -> None:
    stand_in.machines.gateway.late_s = 1.0
    done = run(str(stand_in.kubeconfig), "-k", "kills and worker", "-x")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"(\d+) acknowledged, \1 of them queued for up to [12] s, 0 tries repeated, 0 lost", done.stdout)


def test_a_user_with_many_writes_is_exported_once() -> None:
    exported: list[str] = []

    class Counted(Load):
        def _stored(self, user: str) -> list[str]:
            exported.append(user)
            return ["a", "b", "b"]

    written = [["u", "a"], ["u", "b"], ["v", "c"]]
    assert Counted("", "").check(written) == {"lost": ["c"], "doubled": ["b"], "found": 1}
    assert sorted(exported) == ["u", "v"]


@pytest.mark.parametrize(
    ("kubeconfig", "complaint"),
    [
        ("", "KUBECONFIG is not set: make test-kubernetes KUBECONFIG="),
        ("/nowhere", "KUBECONFIG=/nowhere is not a file"),
    ],
)
def test_a_run_without_a_cluster_ends_with_the_reason(kubeconfig: str, complaint: str) -> None:
    done = run(kubeconfig)
    assert done.returncode == 2
    assert complaint in done.stderr + done.stdout
    assert "KUBE_LOAD" in done.stderr + done.stdout, "the variables are listed"


def test_a_cluster_that_does_not_answer_ends_the_run(stand_in: StandIn) -> None:
    text = stand_in.kubeconfig.read_text()
    other = stand_in.kubeconfig.with_name("dead")
    port = text.split("https://127.0.0.1:")[1].split("\n")[0].strip("'\"")
    other.write_text(text.replace(port, "1"))
    done = run(str(other))
    assert done.returncode == 2
    assert "no Kubernetes API server answers" in done.stderr + done.stdout


@pytest.fixture
def cluster(stand_in: StandIn) -> Cluster:
    made = Cluster(Api(str(stand_in.kubeconfig)))
    made.make_namespace("space", RESTRICTED)
    return made


def test_an_object_with_a_misspelt_field_is_refused(cluster: Cluster) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"selektor": {"a": "b"}}}
    with pytest.raises(ApiRefused, match="selektor"):
        cluster.dry_run("space", service)


def test_a_pod_with_privileges_is_refused_at_the_restricted_level(cluster: Cluster) -> None:
    pod = client_pod("a", "image", "files", "load.py", {})
    cluster.dry_run("space", pod)
    del pod["spec"]["containers"][0]["securityContext"]
    with pytest.raises(ApiRefused, match="violates PodSecurity"):
        cluster.dry_run("space", pod)


def test_a_dry_run_leaves_nothing(cluster: Cluster) -> None:
    cluster.dry_run("space", client_pod("a", "image", "files", "load.py", {}))
    assert cluster.read("space", "v1", "Pod", "a") is None


def test_minimal_definitions_serve_their_kinds(cluster: Cluster) -> None:
    assert [kind for kind in KINDS if cluster.serves(kind.api_version, kind.name)] == []
    with cluster.crds(map(definition, KINDS)) as made:
        assert made == [f"{kind.plural}.{kind.group}" for kind in KINDS]
        assert [kind for kind in KINDS if not cluster.serves(kind.api_version, kind.name)] == []


def test_definitions_are_gone_when_a_later_one_is_refused(stand_in: StandIn, cluster: Cluster) -> None:
    refused = definition(KINDS[1]).replace('"type": "object"', '"type": "string"')
    with pytest.raises(ApiRefused, match="must be an object"), cluster.crds([definition(KINDS[0]), refused]):
        pass
    assert [key for key in stand_in.api.objects.objects if key[1] == "customresourcedefinitions"] == []


def test_a_node_gets_the_resource_once(stand_in: StandIn, cluster: Cluster) -> None:
    take_back = cluster.give_nodes("example.com/gpu", 4)
    assert node(stand_in) == {"cpu": "4", "example.com/gpu": "4"}
    cluster.give_nodes("example.com/gpu", 8)()
    assert node(stand_in) == {"cpu": "4", "example.com/gpu": "4"}, "a node that has some is left as it is"
    take_back()
    assert node(stand_in) == {"cpu": "4"}


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"KUBE_LOAD": "docker push"}, "KUBE_LOAD names no"),
        ({"KUBE_ENGINE": "gpu"}, "KUBE_ENGINE=gpu is not one of scripted, cpu"),
        ({"KUBE_REGISTRY": "localhost"}, "does not end with a slash"),
        ({"KUBE_CRDS": "/nowhere"}, "KUBE_CRDS=/nowhere is not a folder"),
    ],
)
def test_a_wrong_variable_is_refused(variables: dict[str, str], complaint: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.touch()
    with pytest.raises(SettingsRefused, match=complaint):
        ClusterSettings.read({"KUBECONFIG": str(kubeconfig), **variables})


def test_the_table_is_aligned() -> None:
    table = Table()
    table.add("install", "ready", 12.34)
    assert table.text().splitlines() == [
        "| tried   | figure | seconds |",
        "|---------|--------|---------|",
        "| install | ready  | 12.3    |",
    ]
