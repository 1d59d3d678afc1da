"""What the stand-in of Kubernetes' API serves: kinds, objects, and the rules by which it refuses some."""

import copy
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import kubernetes_validate  # pyright: ignore[reportMissingTypeStubs]

Object: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str, str, str]
"""Group and version, plural, namespace (empty without one), name."""
VERSION: Final = "1.31"
_CLUSTER_WIDE: Final = {
    "Namespace", "Node", "PersistentVolume", "StorageClass", "PriorityClass", "CustomResourceDefinition"
}  # fmt: skip
BUILT_IN: Final[Mapping[str, Mapping[str, str]]] = {
    "v1": {
        "Namespace": "namespaces", "Node": "nodes", "Pod": "pods", "Secret": "secrets", "Service": "services",
        "ConfigMap": "configmaps", "ServiceAccount": "serviceaccounts", "PersistentVolume": "persistentvolumes",
        "PersistentVolumeClaim": "persistentvolumeclaims",
    },
    "apps/v1": {"Deployment": "deployments", "StatefulSet": "statefulsets"},
    "batch/v1": {"Job": "jobs", "CronJob": "cronjobs"},
    "networking.k8s.io/v1": {"NetworkPolicy": "networkpolicies", "Ingress": "ingresses"},
    "policy/v1": {"PodDisruptionBudget": "poddisruptionbudgets"},
    "autoscaling/v2": {"HorizontalPodAutoscaler": "horizontalpodautoscalers"},
    "scheduling.k8s.io/v1": {"PriorityClass": "priorityclasses"},
    "storage.k8s.io/v1": {"StorageClass": "storageclasses"},
    "apiextensions.k8s.io/v1": {"CustomResourceDefinition": "customresourcedefinitions"},
}  # fmt: skip


_FIXED: Final = {"Job": ("template",), "StatefulSet": ("selector", "serviceName", "volumeClaimTemplates")}
"""Fields of the spec that cannot be changed, by kind."""


class Refusal(Exception):
    """A status of Kubernetes' API."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


def absent(what: str) -> Refusal:
    """404."""
    return Refusal(404, "NotFound", f"{what} not found")


@dataclass
class Objects:
    """All objects. ``changed`` is called, outside the lock, with what happened and the object."""

    kinds: dict[str, dict[str, str]] = field(default_factory=lambda: {one: {**BUILT_IN[one]} for one in BUILT_IN})
    objects: dict[Key, Object] = field(default_factory=dict[Key, Object])
    lock: threading.RLock = field(default_factory=threading.RLock)
    versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    changed: Callable[[str, Object], None] = lambda what, one: None
    refused: str = ""
    """A kind of which no object can be made."""

    def discovery(self, api_version: str) -> Object:
        """The resources of a version. Raises Refusal."""
        if api_version not in self.kinds:
            raise absent("the server could not find the requested resource")
        verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": api_version,
            "resources": [
                {
                    "name": plural,
                    "singularName": "",
                    "kind": kind,
                    "verbs": verbs,
                    "namespaced": kind not in _CLUSTER_WIDE,
                }
                for kind, plural in self.kinds[api_version].items()
            ],
        }

    def create(self, key: Key, given: Object, *, dry_run: bool, strict: bool) -> Object:
        """Check and keep an object. Raises Refusal."""
        one = copy.deepcopy(given)
        key = (*key[:3], one["metadata"]["name"])
        with self.lock:
            if key in self.objects:
                raise Refusal(409, "AlreadyExists", f"{key[1]} {key[3]} already exists")
            self._check(key, one, strict=strict)
            if dry_run:
                return one
            stamp = next(self.versions)
            one["metadata"] |= {
                "uid": f"uid-{stamp}",
                "creationTimestamp": f"2026-01-01T{stamp // 3600 % 24:02}:{stamp // 60 % 60:02}:{stamp % 60:02}Z",
            }
            one["metadata"] |= {
                "generation": 1,
                "resourceVersion": str(stamp),
                **({"namespace": key[2]} if key[2] else {}),
            }
            one.setdefault("status", {})
            self.objects[key] = one
        self.changed("created", one)
        return one

    def replace(self, key: Key, change: Callable[[Object], None]) -> Object:
        """Change an object in place. Raises Refusal."""
        with self.lock:
            one = self.get(key)
            spec = copy.deepcopy(one.get("spec"))
            change(one)
            for name in _FIXED.get(one["kind"], ()):
                if spec.get(name) != one["spec"].get(name):
                    one["spec"] = spec
                    raise Refusal(422, "Invalid", f"spec.{name}: Invalid value: field is immutable")
            one["metadata"]["resourceVersion"] = str(next(self.versions))
            if one.get("spec") != spec:
                one["metadata"]["generation"] += 1
        self.changed("changed", one)
        return one

    def get(self, key: Key) -> Object:
        """One object. Raises Refusal."""
        with self.lock:
            if key not in self.objects:
                raise absent(f"{key[1]} {key[3]!r}")
            return self.objects[key]

    def delete(self, key: Key) -> Object:
        """Take one away. Raises Refusal."""
        with self.lock:
            one = self.get(key)
            del self.objects[key]
            if key[1] == "namespaces":
                for inner in [other for other in self.objects if other[2] == key[3]]:
                    del self.objects[inner]
        self.changed("deleted", one)
        return one

    def listed(self, api_version: str, plural: str, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """The objects of a kind with these labels."""
        with self.lock:
            found = [
                one
                for key, one in self.objects.items()
                if key[:2] == (api_version, plural) and (not namespace or key[2] == namespace)
            ]
        return [one for one in found if labels.items() <= (one["metadata"].get("labels") or {}).items()]

    def serve(self, crd: Object) -> None:
        """Serve the kind of a definition, in each of its versions."""
        names, group = crd["spec"]["names"], crd["spec"]["group"]
        with self.lock:
            for version in crd["spec"]["versions"]:
                self.kinds.setdefault(f"{group}/{version['name']}", {})[names["kind"]] = names["plural"]

    def _check(self, key: Key, one: Object, *, strict: bool) -> None:
        if one["kind"] == self.refused:
            raise Refusal(403, "Forbidden", f"{self.refused} is refused")
        if key[2] and ("v1", "namespaces", "", key[2]) not in self.objects:
            raise absent(f'namespaces "{key[2]}"')
        if key[0] in BUILT_IN and one["kind"] != "CustomResourceDefinition":
            try:
                kubernetes_validate.validate(one, VERSION, strict=strict)
            except kubernetes_validate.ValidationError as error:
                raise Refusal(400, "BadRequest", f"strict decoding error: {error.message}") from error
        if one["kind"] == "CustomResourceDefinition":
            _check_crd(one)
        if one["kind"] == "Pod":
            self._check_named(key, one["spec"])
            _check_pod(one, self.objects[("v1", "namespaces", "", key[2])])

    def _check_named(self, key: Key, pod: Object) -> None:
        """What a pod names must be there before it, by admission."""
        priority, account = pod.get("priorityClassName", ""), pod.get("serviceAccountName", "default")
        if priority and ("scheduling.k8s.io/v1", "priorityclasses", "", priority) not in self.objects:
            raise Refusal(403, "Forbidden", f"no PriorityClass with name {priority} was found")
        if ("v1", "serviceaccounts", key[2], account) not in self.objects:
            raise Refusal(403, "Forbidden", f"error looking up service account {key[2]}/{account}: not found")


def _check_crd(crd: Object) -> None:
    spec = crd["spec"]
    if spec["group"].endswith(".k8s.io") and "api-approved.kubernetes.io" not in crd["metadata"].get("annotations", {}):
        raise Refusal(422, "Invalid", "protected groups must have approval annotation api-approved.kubernetes.io")
    if crd["metadata"]["name"] != f"{spec['names']['plural']}.{spec['group']}":
        raise Refusal(422, "Invalid", "metadata.name must be spec.names.plural+'.'+spec.group")
    for version in spec["versions"]:
        if version["schema"]["openAPIV3Schema"].get("type") != "object":
            raise Refusal(422, "Invalid", "the root of a schema must be an object")
    crd["status"] = {"conditions": None}  # until its controller has seen it


def _check_pod(pod: Object, namespace: Object) -> None:
    """What validation and Pod Security at the restricted level ask. Raises Refusal."""
    spec = pod["spec"]
    volumes = {one["name"]: one for one in spec.get("volumes", ())}
    containers = [*spec.get("initContainers", ()), *spec["containers"]]
    for container in containers:
        for mount in container.get("volumeMounts", ()):
            if mount["name"] not in volumes:
                raise Refusal(422, "Invalid", f"spec.containers.volumeMounts: Not found: {mount['name']!r}")
    if (namespace["metadata"].get("labels") or {}).get("pod-security.kubernetes.io/enforce") != "restricted":
        return
    broken = [f"{one['name']}: {rule}" for one in containers for rule in _broken(one, spec.get("securityContext", {}))]
    broken += [f"volume {name}" for name, one in volumes.items() if not _RESTRICTED_VOLUMES & one.keys()]
    broken += [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    if broken:
        raise Refusal(403, "Forbidden", f'violates PodSecurity "restricted:latest": {", ".join(broken)}')


_RESTRICTED_VOLUMES: Final = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"
}  # fmt: skip


def _broken(container: Object, pod: Object) -> Iterator[str]:
    own = container.get("securityContext", {})
    if own.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation != false"
    if "ALL" not in own.get("capabilities", {}).get("drop", ()):
        yield "unrestricted capabilities"
    if (own.get("runAsNonRoot", pod.get("runAsNonRoot"))) is not True:
        yield "runAsNonRoot != true"
    if own.get("runAsUser", pod.get("runAsUser", 1)) == 0:
        yield "runAsUser=0"
    if (own.get("seccompProfile") or pod.get("seccompProfile") or {}).get("type") not in {
        "RuntimeDefault",
        "Localhost",
    }:
        yield "seccompProfile"
