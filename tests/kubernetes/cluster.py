"""What the tests ask of a cluster: namespaces, objects, pods that end or are killed, and answers of single pods."""

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
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
        """SIGKILL, one second after SIGTERM.

        A grace of 0 would make the API server forget the pod at once while its processes end in their own time, and a
        StatefulSet's next pod could run beside them.
        """
        self.delete(namespace, "v1", "Pod", pod, gracePeriodSeconds="1")

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

    def give_nodes(self, resource: str, count: int) -> Callable[[], None]:
        """Let the first node have so many of a resource, unless a node has some; returns what takes it back."""
        nodes = self.api.call("GET", "/api/v1/nodes")["items"]
        if any(resource in node["status"].get("capacity", {}) for node in nodes):
            return lambda: None
        name = name_of(nodes[0])
        self._set_resource(name, resource, str(count))
        return lambda: self._set_resource(name, resource, None)

    @contextlib.contextmanager
    def crds(self, texts: Iterable[str]) -> Generator[list[str]]:
        """The CustomResourceDefinitions of files, served; those that were missing are gone at the end."""
        made: list[str] = []
        try:
            for one in (one for text in texts for one in yaml.safe_load_all(text) if one):
                if self._create_missing(one):
                    made.append(name_of(one))
                until(lambda one=one: self._established(name_of(one)), f"CRD {name_of(one)}", timeout_s=60)
            self.api.forget_kinds()
            yield made
        finally:
            for name in made:
                self.delete("", *_CRDS, name)
            self.api.forget_kinds()

    def told(self, namespace: str) -> str:
        """Each pod's phase, and why its containers wait; for the message of a failure."""
        return "\n".join(_told(pod) for pod in self.api.call("GET", f"/api/v1/namespaces/{namespace}/pods")["items"])

    def _resource(self, one: Object) -> Any:
        return self.api.resource(one["apiVersion"], one["kind"])

    def _set_resource(self, node: str, resource: str, count: str | None) -> None:
        amounts = {"capacity": {resource: count}, "allocatable": {resource: count}}
        self.api.call("PATCH", f"/api/v1/nodes/{node}/status", {"status": amounts}, kind=_MERGE)

    def _create_missing(self, one: Object) -> bool:
        try:
            self.create("", one)
        except ApiRefused as refusal:
            if refusal.status != _CONFLICT:
                raise
            return False
        return True

    def _established(self, name: str) -> bool:
        found = self.read("", *_CRDS, name)
        return found is not None and "Established" in _true_conditions(found)

    def _job_ended(self, namespace: str, name: str) -> str | None:
        job = self.read(namespace, "batch/v1", "Job", name)
        ends = [one for one in _true_conditions(job) if one in {"Complete", "Failed"}] if job else []
        return ends[0] if ends else None

    def _job_told(self, namespace: str, job: str) -> str:
        pods = self.pods(namespace, **{"batch.kubernetes.io/job-name": job})
        return "\n".join([*map(_told, pods), *(self.logs(namespace, name_of(pod)) for pod in pods)])


def name_of(one: Object) -> str:
    """An object's name."""
    return str(one["metadata"]["name"])


def is_ready(pod: Object) -> bool:
    """Whether a pod's condition Ready is True."""
    return "Ready" in _true_conditions(pod)


def _true_conditions(one: Object) -> list[str]:
    """The API server writes null for no conditions in some kinds, and leaves them out in others."""
    return [str(found["type"]) for found in one["status"].get("conditions") or () if found["status"] == "True"]


def _told(pod: Object) -> str:
    status = pod["status"]
    states: Sequence[Object] = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    waits = [f"{one['name']}: {one['state']['waiting']}" for one in states if "waiting" in one.get("state", {})]
    unmet = [
        str(one["message"]) for one in status.get("conditions", ()) if one["status"] != "True" and "message" in one
    ]
    return f"{name_of(pod)} {status.get('phase', '?')} {'; '.join([*waits, *unmet])}".strip()
