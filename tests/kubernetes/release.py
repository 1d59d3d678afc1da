"""One release of the chart in a namespace of its own, by Helm's own engine; and the clients beside it."""

import contextlib
import hashlib
import json
import secrets
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import helm_python as helm

from tests.deploy.chart.chart_release import CHART, Values, changed
from tests.kubernetes.api import Object
from tests.kubernetes.cluster import Cluster, NotReached, name_of, until
from tests.kubernetes.images import gateway_image, image_values
from tests.kubernetes.pods import client_pod
from tests.kubernetes.settings import ClusterSettings

NAME: Final = "memloop"
BACKUPS: Final = "backups"
_FILES: Final = "test-files"
_NO_LOG: Final = "unable to get pod logs"
_START_S: Final = 900.0
_LOAD_PORT: Final = 8000
_STOP_S: Final = 660.0
"""Longer than load.py tries one write."""
_SMALL: Final[Values] = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}
_STORE: Final[Values] = {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "3Gi"}}


def values_for(settings: ClusterSettings) -> Values:
    """Everything in the release, two of each stateless process, on a small node."""
    disk = {"size": "1Gi", "storageClass": settings.storage_class}
    values: Values = {
        "secrets": {"existingSecret": "memloop-keys"},
        "image": {"registry": settings.registry},
        "images": image_values(settings),
        "redis": {"enabled": True, "maxMemory": "128mb", "resources": _SMALL, **disk},
        "qdrant": {"enabled": True, "resources": _STORE, **disk},
        "gateway": {"resources": _SMALL},
        "worker": {"resources": _SMALL},
        "memoryStore": {"resources": _STORE},
        "inference": {
            "defaults": {
                "engine": "vllm-cpu",
                "replicas": 2,
                "gpuResource": settings.gpu_resource,
                "cache": disk,
                "sharedMemory": "256Mi",
                "resources": _STORE if settings.engine == "cpu" else _SMALL,
            },
            "models": [{"name": "tiny", "model": "memloop-tiny"}],
        },
        "smokeTest": {"keySecret": {"name": "memloop-first-key"}},
        "backup": {"enabled": True, "existingClaim": BACKUPS, "schedule": "0 0 1 1 *", "resources": _SMALL},
    }
    return values


def after_a_change(values: Values, mark: str) -> Values:
    """Values by which an upgrade restarts every process and every engine."""
    for part in ("gateway", "worker", "memoryStore", "inference.defaults"):
        values = changed(values, f"{part}.podAnnotations", {"test-revision": mark})
    return values


@dataclass(frozen=True)
class Load:
    """Clients in a pod that is running."""

    cluster: Cluster
    namespace: str
    pod: str

    def report(self) -> dict[str, Any]:
        """The counts so far."""
        return json.loads(self.cluster.answer(self.namespace, self.pod, _LOAD_PORT, "/report"))

    def stop(self) -> dict[str, Any]:
        """End the clients; the last counts. Raises NotReached."""
        self.cluster.answer(self.namespace, self.pod, _LOAD_PORT, "/stop", method="POST")
        until(lambda: self.report()["alive"] == 0, "the end of all clients", timeout_s=_STOP_S)
        return self.report()

    def check(self, written: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Which acknowledged texts are lost or doubled."""
        told = self.cluster.answer(self.namespace, self.pod, _LOAD_PORT, "/check", method="POST", body=written)
        return json.loads(told)

    def until_more(self, name: str, more: int, *, timeout_s: float = 300.0) -> None:
        """Until the clients have counted so many more of ``chats`` or ``acknowledged``. Raises NotReached."""
        goal = _count(self.report()[name]) + more
        until(lambda: _count(self.report()[name]) >= goal, f"{more} more {name}", timeout_s=timeout_s)


class Release:
    """The release; ``key`` is that of its only tenant."""

    def __init__(self, cluster: Cluster, settings: ClusterSettings, namespace: str) -> None:
        self.cluster = cluster
        self.settings = settings
        self.namespace = namespace
        self.values = after_a_change(values_for(settings), "first")
        self.key = secrets.token_hex(24)

    def prepare(self) -> None:
        """What an operator makes before: Secrets, the claim of backups, and the files of the tests' own pods."""
        hashed = hashlib.sha256(self.key.encode()).hexdigest()
        words = {name: secrets.token_hex(24) for name in ("MEMLOOP_STORE_KEY", "MEMLOOP_ENGINE_API_KEY")}
        words |= {name: secrets.token_hex(24) for name in ("REDIS_PASSWORD", "QDRANT_API_KEY", "QDRANT_READ_KEY")}
        self._make_secret("memloop-keys", {"MEMLOOP_API_KEYS": f"test:{hashed}", **words})
        self._make_secret("memloop-first-key", {"api-key": self.key})
        spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        if self.settings.storage_class:
            spec["storageClassName"] = self.settings.storage_class
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": BACKUPS}, "spec": spec}
        self.cluster.create(self.namespace, claim)
        make_files(self.cluster, self.namespace)

    def install(self) -> None:
        """Install, and wait until every pod is ready."""
        with self.helm() as config:
            config.install(str(CHART), NAME, self.values, timeout=600)
        self.wait_ready()

    def upgrade(self, values: Values) -> None:
        """Upgrade, and wait until the rollout is over."""
        with self.helm() as config:
            config.upgrade(str(CHART), NAME, values, timeout=600)
        self.wait_ready()

    def roll_back(self) -> None:
        """To the revision before, until the rollout is over."""
        with self.helm() as config:
            config.rollback(NAME, timeout=600)
        self.wait_ready()

    def uninstall(self) -> None:
        """Uninstall, if anything was installed."""
        with self.helm() as config, contextlib.suppress(helm.HelmNotFoundError):
            config.uninstall(NAME, timeout=300)

    def test(self) -> str:
        """``helm test``; the log of its pod, empty where the API server cannot get it. Raises helm.HelmError."""
        with self.helm() as config:
            try:
                return str(config.test(NAME, timeout=900, logs=True).get("logs", ""))
            except helm.HelmError as error:
                if _NO_LOG not in str(error):
                    raise
            config.test(NAME, timeout=900)
            return ""

    def helm(self) -> "contextlib.AbstractContextManager[helm.Config]":
        """Helm, at this namespace."""
        return helm.Config(kubeconfig_path=str(self.settings.kubeconfig), namespace=self.namespace)

    def wait_ready(self, *, timeout_s: float = _START_S) -> None:
        """Until every Deployment and StatefulSet has as many new, ready pods as it wants. Raises NotReached."""
        try:
            until(lambda: self._unready() == [], f"a whole release: {self._unready()}", timeout_s=timeout_s)
        except NotReached as late:
            raise NotReached(f"{late}; not ready: {self._unready()}\n{self.cluster.told(self.namespace)}") from late

    def _unready(self) -> list[str]:
        owners = [
            one
            for plural in ("deployments", "statefulsets")
            for one in self.cluster.api.call("GET", f"/apis/apps/v1/namespaces/{self.namespace}/{plural}")["items"]
        ]
        return [name_of(one) for one in owners if not _is_rolled_out(one)]

    @contextlib.contextmanager
    def loaded(self, *, chats: int = 0, writes: int = 0) -> Generator[Load]:
        """Clients at work inside the cluster; their pod is gone at the end."""
        name = f"load-{secrets.token_hex(3)}"
        given = {"LOAD_URL": f"http://{NAME}-gateway:7800", "LOAD_KEY": self.key}
        given |= {"LOAD_CHATS": str(chats), "LOAD_WRITES": str(writes)}
        self.start_pod(client_pod(name, gateway_image(self.settings), _FILES, "load.py", given))
        load = Load(self.cluster, self.namespace, name)
        until(lambda: load.report()["alive"] == chats + writes, "clients at work", timeout_s=120)
        try:
            yield load
        finally:
            self.cluster.kill(self.namespace, name)

    def start_pod(self, pod: Object) -> None:
        """Create a pod and wait until it runs or has ended."""
        self.cluster.create(self.namespace, pod)
        until(
            lambda: _has_begun(self.cluster.read(self.namespace, "v1", "Pod", name_of(pod))),
            f"{name_of(pod)} begun",
            timeout_s=180,
        )

    def _make_secret(self, name: str, data: dict[str, str]) -> None:
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}
        self.cluster.create(self.namespace, secret)


def make_files(cluster: Cluster, namespace: str) -> None:
    """The ConfigMap with the programs of the tests' own pods."""
    here = Path(__file__).parent
    data = {name: (here / name).read_text() for name in ("load.py", "reach.py", "restore_qdrant.py")}
    cluster.create(namespace, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _FILES}, "data": data})


def _is_rolled_out(owner: Object) -> bool:
    spec, status = owner["spec"], owner.get("status", {})
    wanted = spec.get("replicas", 1)
    seen = status.get("observedGeneration", 0) >= owner["metadata"]["generation"]
    counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas")]
    return seen and counts == [wanted] * 3


def _has_begun(pod: Object | None) -> bool:
    return pod is not None and pod["status"].get("phase") in {"Running", "Succeeded", "Failed"}


def _count(counted: Any) -> int:
    return counted if isinstance(counted, int) else len(counted)
