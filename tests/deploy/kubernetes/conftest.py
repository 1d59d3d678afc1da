"""A stand-in of a cluster: its API server, controllers and a kubelet."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.kubernetes.kube_api import KubeApi
from tests.deploy.kubernetes.kube_machines import Machines


@dataclass(frozen=True)
class StandIn:
    """The kubeconfig and what is behind it."""

    kubeconfig: Path
    api: KubeApi
    machines: Machines


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[StandIn]:
    api = KubeApi()
    machines = Machines(api)
    yield StandIn(api.start(tmp_path), api, machines)
    machines.stop()
    api.stop()
