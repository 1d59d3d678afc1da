"""What a run against a cluster is given, by environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast, get_args

Engine: TypeAlias = Literal["scripted", "cpu"]
Databases: TypeAlias = Literal["official", "stand-ins"]

VARIABLES: Mapping[str, str] = {
    "KUBECONFIG": "the cluster's kubeconfig; required. Its user makes namespaces, a node's resource and CRDs",
    "KUBE_REGISTRY": "registry of the images, with its slash (localhost/)",
    "KUBE_TAG": "tag of the images (test)",
    "KUBE_LOAD": "command that hands an image to the cluster, with {image} or {archive} in it; empty: none is built",
    "KUBE_DATABASES": "official Redis and Qdrant, or stand-ins built here (stand-ins with KUBE_LOAD, else official)",
    "KUBE_ENGINE": "two launchers each with a scripted engine, or, as cpu, with vLLM and the tiny model (scripted)",
    "KUBE_STORAGE_CLASS": "class of all disks; empty: the cluster's default",
    "KUBE_VOLUMES": "folder of this machine, the only node: a class of local volumes is made of it; empty: none",
    "KUBE_GPU_RESOURCE": "resource that the engines ask for; it is patched into a node while no node has any"
    " (memloop.example/gpu)",
    "KUBE_CRDS": "folder of CustomResourceDefinitions; minimal ones are made of kinds that are still missing",
    "KUBE_KEEP": "1 keeps the namespaces and all else at the end",
}
"""Name and meaning; a default in parentheses."""


class SettingsRefused(ValueError):
    """A run cannot begin with these variables."""


@dataclass(frozen=True)
class ClusterSettings:
    """The variables, read."""

    kubeconfig: Path
    registry: str
    tag: str
    load: str
    databases: Databases
    engine: Engine
    storage_class: str
    volumes: Path | None
    gpu_resource: str
    crds: Path | None
    keep: bool

    @classmethod
    def read(cls, given: Mapping[str, str] = os.environ) -> "ClusterSettings":
        """Raises SettingsRefused, with what to set."""
        load, crds = given.get("KUBE_LOAD", ""), given.get("KUBE_CRDS", "")
        volumes = given.get("KUBE_VOLUMES", "")
        if load and "{image}" not in load and "{archive}" not in load:
            raise SettingsRefused("KUBE_LOAD names no {image} and no {archive}: ctr -n k8s.io images import {archive}")
        if crds and not Path(crds).is_dir():
            raise SettingsRefused(f"KUBE_CRDS={crds} is not a folder")
        return cls(
            kubeconfig=_kubeconfig(given.get("KUBECONFIG", "")),
            registry=_registry(given.get("KUBE_REGISTRY", "") or "localhost/"),
            tag=given.get("KUBE_TAG", "") or "test",
            load=load,
            databases=cast(Databases, _one_of(given, "KUBE_DATABASES", Databases, "stand-ins" if load else "official")),
            engine=cast(Engine, _one_of(given, "KUBE_ENGINE", Engine, "scripted")),
            storage_class=given.get("KUBE_STORAGE_CLASS", ""),
            volumes=Path(volumes) if volumes else None,
            gpu_resource=given.get("KUBE_GPU_RESOURCE", "") or "memloop.example/gpu",
            crds=Path(crds) if crds else None,
            keep=given.get("KUBE_KEEP", "") == "1",
        )


def _kubeconfig(given: str) -> Path:
    if not given:
        raise SettingsRefused("KUBECONFIG is not set: make test-kubernetes KUBECONFIG=/path/to/kubeconfig")
    path = Path(given).expanduser()
    if not path.is_file():
        raise SettingsRefused(f"KUBECONFIG={given} is not a file")
    return path


def _registry(given: str) -> str:
    if not given.endswith("/"):
        raise SettingsRefused(f"KUBE_REGISTRY={given} does not end with a slash")
    return given


def _one_of(given: Mapping[str, str], name: str, choices: object, default: str) -> str:
    chosen = given.get(name, "") or default
    if chosen not in get_args(choices):
        raise SettingsRefused(f"{name}={chosen} is not one of {', '.join(get_args(choices))}")
    return chosen
