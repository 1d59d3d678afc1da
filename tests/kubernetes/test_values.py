"""Every file of values, checked by the API server: objects as if they were created, pods at the restricted level."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import pytest
import yaml

from tests.deploy.chart.chart_release import FILES, Objects, open_chart, values_of
from tests.kubernetes.api import ApiRefused, Object
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.crds import KINDS, definition
from tests.kubernetes.settings import ClusterSettings
from tests.kubernetes.table import Table

_LATER: Final = ("serviceAccountName", "priorityClassName", "runtimeClassName")
"""What a pod names that a dry run has not made."""
_DATABASES: Final = ("-redis", "-qdrant")


@pytest.fixture(scope="module")
def space(namespaces: Callable[..., str]) -> str:
    """An empty namespace at the restricted level."""
    return namespaces("values")


@pytest.fixture(scope="module")
def crds(cluster: Cluster, settings: ClusterSettings, table: Table) -> Iterator[None]:
    """All kinds that the chart may make; those that are made here are gone at the end."""
    texts = [path.read_text() for path in sorted(settings.crds.glob("*.y*ml"))] if settings.crds else []
    with cluster.crds(texts):
        own = [kind for kind in KINDS if not cluster.serves(kind.api_version, kind.name)]
        with cluster.crds(map(definition, own)):
            table.add(
                "CRDs present", f"{len(KINDS) - len(own)} of the cluster or KUBE_CRDS, {len(own)} minimal ones", 0.0
            )
            yield


@pytest.mark.parametrize("file", sorted(FILES))
@pytest.mark.usefixtures("crds")
def test_the_api_server_accepts_every_object(
    cluster: Cluster, space: str, file: str, row: Callable[[str], None]
) -> None:
    objects = rendered(file, space)
    refused = refusals(cluster, space, [one for one in objects if one["kind"] != "Pod"])
    pods = [pod_of(owner, pod) for owner, pod in objects.pods()]
    refused |= refusals(cluster, space, pods)
    row(f"{len(objects)} objects and {len(pods)} pods, {len(refused)} refused")
    assert refused == {}


def rendered(file: str, namespace: str) -> Objects:
    """What the chart makes of a file of values in a namespace."""
    with open_chart() as chart:
        texts = chart.render(values_of(file), name="demo", namespace=namespace)
    found = [one for path, text in texts.items() if path.endswith(".yaml") for one in yaml.safe_load_all(text)]
    return Objects([one for one in found if one])


def refusals(cluster: Cluster, namespace: str, objects: list[Object]) -> Mapping[str, str]:
    """What the API server says against each object that it refuses."""
    said: dict[str, str] = {}
    for one in objects:
        try:
            cluster.dry_run(namespace, one)
        except ApiRefused as refusal:
            said[f"{one['kind']} {one['metadata']['name']}"] = str(refusal)
    return said


def pod_of(owner: str, template: Object) -> Object:
    """A pod of a template, as its controller would make it, without what is made beside it."""
    spec = {name: value for name, value in template["spec"].items() if name not in _LATER}
    if owner.endswith(_DATABASES):
        spec["volumes"] = [*spec["volumes"], {"name": "data", "emptyDir": {}}]  # the claim of its StatefulSet
    claimed = template["metadata"].get("labels", {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{owner}-x", "labels": claimed}, "spec": spec}
