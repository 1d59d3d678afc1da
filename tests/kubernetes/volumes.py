"""Disks for a cluster of one node that has none: local volumes in a folder of this machine."""

import contextlib
import secrets
import shutil
from typing import Final

from tests.kubernetes.api import Object
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.settings import ClusterSettings

_COUNT: Final = 40
"""Enough for each engine's disk of its own, which a new pod does not get again."""


def make_volumes(cluster: Cluster, settings: ClusterSettings, undo: contextlib.ExitStack) -> None:
    """Make the class and its volumes, if a folder is given; ``undo`` removes them and their data."""
    if settings.volumes is None:
        return
    if not settings.storage_class:
        raise ValueError("KUBE_VOLUMES needs KUBE_STORAGE_CLASS, the name of the class that is made")
    run = secrets.token_hex(3)
    [node, *_] = cluster.api.call("GET", "/api/v1/nodes")["items"]
    host = node["metadata"]["labels"]["kubernetes.io/hostname"]
    if cluster.read("", "storage.k8s.io/v1", "StorageClass", settings.storage_class) is None:
        undo.callback(cluster.delete, "", "storage.k8s.io/v1", "StorageClass", settings.storage_class)
        cluster.create("", _class(settings.storage_class))
    for number in range(_COUNT):
        name = f"memloop-{run}-{number}"
        folder = settings.volumes / name
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        undo.callback(cluster.delete, "", "v1", "PersistentVolume", name)
        folder.mkdir(parents=True, mode=0o777)
        cluster.create("", _volume(name, settings.storage_class, str(folder), host))


def _class(name: str) -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _volume(name: str, storage_class: str, path: str, host: str) -> Object:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }
