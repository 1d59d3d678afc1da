"""What the tests ask of a cluster: namespaces, objects, pods that end or are killed, and answers of single pods."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import yaml

from tests.kubernetes.api import Api, ApiRefused, ApiUnreachable, Object, UnknownKind

Found = TypeVar("Found")
RESTRICTED: Final[Mapping[str, str]] = {
    f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
}
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_MERGE: Final = "application/merge-patch+json"
_CRDS: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class NotReached(AssertionError):
    """A state of the cluster did not come about in time."""


def until(reached: Callable[[], Found | None], what: str, *, timeout_s: float, every_s: float = 0.5) -> Found:
    """Wait for a result that is true. Refusals of the API server are waited out. Raises NotReached."""
    deadline, last = time.monotonic() + timeout_s, ""
    while True:
        try:
            found = reached()
        except (ApiRefused, ApiUnreachable) as error:
            found, last = None, f" ({error})"
        if found:
            return found
        if time.monotonic() > deadline:
            raise NotReached(f"not within {timeout_s:.0f} s: {what}{last}")
        time.sleep(every_s)


class Cluster:
    """One cluster; every call names its namespace."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def version(self) -> str:
        """As v1.31.14. Raises ApiUnreachable."""
        return str(self.api.call("GET", "/version")["gitVersion"])

    def serves(self, api_version: str, kind: str) -> bool:
        """Whether the cluster knows a kind."""
        try:
            self.api.resource(api_version, kind)
        except UnknownKind:
            return False
        return True

    def make_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A new one; its default account is there when it returns."""
        self.create(name, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**labels}}})
        until(lambda: self.read(name, "v1", "ServiceAccount", "default"), f"an account in {name}", timeout_s=60)

    def drop_namespace(self, name: str) -> None:
        """With all that is in it; returns when it is gone."""
        with contextlib.suppress(ApiRefused):
            self.api.call("DELETE", f"/api/v1/namespaces/{name}")
        until(lambda: self.read(name, "v1", "Namespace", name) is None, f"the end of namespace {name}", timeout_s=600)

    def create(self, namespace: str, one: Object, **query: str) -> Object:
        """Create an object of any kind. Raises ApiRefused and UnknownKind."""
        return self.api.call("POST", self._resource(one).path(namespace), one, **query)

    def dry_run(self, namespace: str, one: Object) -> None:
        """Have the API server check an object as if it were created. Raises ApiRefused and UnknownKind."""
        self.create(namespace, one, dryRun="All", fieldValidation="Strict")

    def read(self, namespace: str, api_version: str, kind: str, name: str) -> Object | None:
        """An object, or None."""
        try:
            return self.api.call("GET", self.api.resource(api_version, kind).path(namespace, name))
        except ApiRefused as refusal:
            if refusal.status == _NOT_FOUND:
                return None
            raise

    def delete(self, namespace: str, api_version: str, kind: str, name: str, **query: str) -> None:
        """Delete an object, if it is there."""
        try:
            self.api.call("DELETE", self.api.resource(api_version, kind).path(namespace, name), **query)
        except ApiRefused as refusal:
            if refusal.status != _NOT_FOUND:
                raise

    def scale(self, namespace: str, kind: str, name: str, replicas: int) -> None:
        """Set the number of pods of a Deployment or StatefulSet."""
        path = self.api.resource("apps/v1", kind).path(namespace, name, "scale")
        self.api.call("PATCH", path, {"spec": {"replicas": replicas}}, kind=_MERGE)

    def pods(self, namespace: str, **labels: str) -> list[Object]:
        """The pods with these labels that are not ending, oldest first."""
        chosen = ",".join(f"{name}={value}" for name, value in labels.items())
        found = self.api.call("GET", f"/api/v1/namespaces/{namespace}/pods", labelSelector=chosen)["items"]
        alive = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return sorted(alive, key=lambda pod: (pod["metadata"]["creationTimestamp"], name_of(pod)))

    def components(self, namespace: str, component: str) -> list[Object]:
        """The pods of a component of the chart."""
        return self.pods(namespace, **{"app.kubernetes.io/component": component})

    def ready(self, namespace: str, component: str) -> list[str]:
        """Names of a component's pods that are ready."""
        return [name_of(pod) for pod in self.components(namespace, component) if is_ready(pod)]

    def kill(self, namespace: str, pod: str) -> None:
        """At once, without grace, as if its node had died."""
        self.delete(namespace, "v1", "Pod", pod, gracePeriodSeconds="0")

    def end(self, namespace: str, pod: str) -> None:
        """As a drain of its node does: SIGTERM and the pod's own grace."""
        self.delete(namespace, "v1", "Pod", pod)

    def answer(
        self, namespace: str, pod: str, port: int, path: str, *, method: str = "GET", body: object = None
    ) -> str:
        """What a pod answers on a port, through the API server. Raises ApiRefused and ApiUnreachable."""
        return self.api.text(method, f"/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy{path}", body)

    def logs(self, namespace: str, pod: str) -> str:
        """The last lines of a pod."""
        try:
            return self.api.text("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}/log", tailLines="40")
        except (ApiRefused, ApiUnreachable) as error:
            return f"no log: {error}"

    def phase_ended(self, namespace: str, pod: str) -> str | None:
        """Succeeded or Failed; None while it runs."""
        found = self.read(namespace, "v1", "Pod", pod)
        phase = str(found["status"].get("phase", "")) if found else ""
        return phase if phase in {"Succeeded", "Failed"} else None

    def wait_job(self, namespace: str, name: str, *, timeout_s: float) -> None:
        """Until a Job is complete. Raises NotReached with its pods' last lines when it fails or takes too long."""
        try:
            done = until(lambda: self._job_ended(namespace, name), f"the end of job {name}", timeout_s=timeout_s)
        except NotReached as late:
            raise NotReached(f"{late}\n{self._job_told(namespace, name)}") from late
        if done == "Failed":
            raise NotReached(f"job {name} failed\n{self._job_told(namespace, name)}")

    def give_nodes(self, resource: str, count: int) -> str | None:
        """Let the first node have so many of a resource, unless one has them; the node that was patched."""
        nodes = self.api.call("GET", "/api/v1/nodes")["items"]
        if any(int(node["status"].get("allocatable", {}).get(resource, "0")) >= count for node in nodes):
            return None
        name = name_of(nodes[0])
        amounts = {"capacity": {resource: str(count)}, "allocatable": {resource: str(count)}}
        self.api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": amounts}, kind=_MERGE)
        return name

    def make_crds(self, text: str) -> list[str]:
        """Create the CustomResourceDefinitions of a file, and wait until they are served; the names of the new ones."""
        made: list[str] = []
        for one in filter(None, yaml.safe_load_all(text)):
            try:
                self.create("", one)
                made.append(name_of(one))
            except ApiRefused as refusal:
                if refusal.status != _CONFLICT:
                    raise
            self._await_crd(name_of(one))
        self.api.forget_kinds()
        return made

    def drop_crd(self, name: str) -> None:
        """With all objects of its kind."""
        self.delete("", *_CRDS, name)
        self.api.forget_kinds()

    def told(self, namespace: str) -> str:
        """Each pod's phase, and why its containers wait; for the message of a failure."""
        return "\n".join(_told(pod) for pod in self.api.call("GET", f"/api/v1/namespaces/{namespace}/pods")["items"])

    def _resource(self, one: Object) -> Any:
        return self.api.resource(one["apiVersion"], one["kind"])

    def _await_crd(self, name: str) -> None:
        until(lambda: self._established(name), f"CRD {name}", timeout_s=60)

    def _established(self, name: str) -> bool:
        found = self.read("", *_CRDS, name)
        conditions = found["status"].get("conditions", []) if found else []
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    def _job_ended(self, namespace: str, name: str) -> str | None:
        job = self.read(namespace, "batch/v1", "Job", name)
        conditions = job["status"].get("conditions", []) if job else []
        ends = [one["type"] for one in conditions if one["status"] == "True" and one["type"] in {"Complete", "Failed"}]
        return ends[0] if ends else None

    def _job_told(self, namespace: str, job: str) -> str:
        pods = self.pods(namespace, **{"batch.kubernetes.io/job-name": job})
        return "\n".join([*map(_told, pods), *(self.logs(namespace, name_of(pod)) for pod in pods)])


def name_of(one: Object) -> str:
    """An object's name."""
    return str(one["metadata"]["name"])


def is_ready(pod: Object) -> bool:
    """Whether a pod's condition Ready is True."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


def _told(pod: Object) -> str:
    status = pod["status"]
    states: Sequence[Object] = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    waits = [f"{one['name']}: {one['state']['waiting']}" for one in states if "waiting" in one.get("state", {})]
    unmet = [
        str(one["message"]) for one in status.get("conditions", ()) if one["status"] != "True" and "message" in one
    ]
    return f"{name_of(pod)} {status.get('phase', '?')} {'; '.join([*waits, *unmet])}".strip()
