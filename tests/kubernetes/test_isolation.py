"""Another team's namespace reaches the gateway and nothing behind it. Skipped where no plug-in enforces policies."""

import json
import secrets
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from tests.kubernetes.api import Object
from tests.kubernetes.cluster import Cluster, until
from tests.kubernetes.images import gateway_image
from tests.kubernetes.pods import client_pod, last_words
from tests.kubernetes.release import Release, make_files
from tests.kubernetes.settings import ClusterSettings

_SETTLE_S: Final = 20
"""Plug-ins apply a policy some seconds after it was made."""


def test_another_team_is_kept_out_of_all_but_the_gateway(
    release: Release,
    cluster: Cluster,
    settings: ClusterSettings,
    namespaces: Callable[..., str],
    row: Callable[[str], None],
) -> None:
    if not enforces_policies(cluster, settings, namespaces("probe")):
        row("skipped: the cluster's network plug-in does not enforce NetworkPolicies")
        pytest.skip("the cluster's network plug-in does not enforce NetworkPolicies")
    team = namespaces("team")
    make_files(cluster, team)
    closed = inner_addresses(release)
    opened = f"{address_of(release, 'gateway')}:7800"
    told = reach(cluster, settings, team, [opened, *closed])
    row(f"gateway reached; {sum(not told[one] for one in closed)} of {len(closed)} inner addresses closed")
    assert told[opened]
    assert [one for one in closed if told[one]] == []


def enforces_policies(cluster: Cluster, settings: ClusterSettings, namespace: str) -> bool:
    """Whether a policy that lets nobody in keeps a client out of a server that it reached before."""
    make_files(cluster, namespace)
    cluster.create(namespace, client_pod("server", gateway_image(settings), "test-files", "reach.py", {"SERVE": "1"}))
    address = until(lambda: _address(cluster, namespace, "server"), "an address", timeout_s=180)
    until(lambda: reach(cluster, settings, namespace, [address])[address], f"{address} reached", timeout_s=180)
    nobody: Object = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": []}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "nobody"}}
    cluster.create(namespace, {**policy, "spec": nobody})
    return not reach(cluster, settings, namespace, [address], wait_s=_SETTLE_S)[address]


def reach(
    cluster: Cluster, settings: ClusterSettings, namespace: str, addresses: list[str], *, wait_s: int = 0
) -> Mapping[str, bool]:
    """Which addresses a pod of this namespace can connect to."""
    name = f"reach-{secrets.token_hex(3)}"
    given = {"REACH": ",".join(addresses), "WAIT_S": str(wait_s)}
    cluster.create(namespace, client_pod(name, gateway_image(settings), "test-files", "reach.py", given))
    until(lambda: cluster.phase_ended(namespace, name), f"the end of {name}", timeout_s=300)
    pod = cluster.read(namespace, "v1", "Pod", name)
    assert pod is not None
    cluster.kill(namespace, name)
    return json.loads(last_words(pod))


def inner_addresses(release: Release) -> list[str]:
    """Everything that listens behind the gateway, and the gateway's port of metrics."""
    ports = {"redis": [6379], "qdrant": [6333], "memory-store": [7801, 7809], "worker": [7809], "gateway": [7809]}
    ports["inference"] = [7802, 7803, 7809]
    return [f"{address_of(release, part)}:{port}" for part, numbers in ports.items() for port in numbers]


def address_of(release: Release, component: str) -> str:
    """The IP address of a component's first pod."""
    return str(release.cluster.components(release.namespace, component)[0]["status"]["podIP"])


def _address(cluster: Cluster, namespace: str, pod: str) -> str | None:
    found = cluster.read(namespace, "v1", "Pod", pod)
    ip = found["status"].get("podIP") if found else None
    return f"{ip}:8000" if ip else None
