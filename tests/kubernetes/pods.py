"""The tests' own pods: programs on the gateway's image, confined as the restricted level asks."""

from collections.abc import Mapping
from typing import Final

from tests.kubernetes.api import Object

CONFINED: Final[Object] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""A container's security context, as the chart's."""

CONFINED_POD: Final[Object] = {
    "runAsNonRoot": True,
    "runAsUser": 10001,
    "runAsGroup": 10001,
    "fsGroup": 10001,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def client_pod(name: str, image: str, files: str, program: str, env: Mapping[str, str]) -> Object:
    """A pod that runs one of the programs in the ConfigMap ``files``."""
    container: Object = {
        "name": "client",
        "image": image,
        "command": ["python", "-u", f"/files/{program}"],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            *({"name": key, "value": value} for key, value in env.items()),
        ],
        "securityContext": CONFINED,
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": "files", "mountPath": "/files"}, {"name": "tmp", "mountPath": "/tmp"}],
    }
    spec: Object = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "restartPolicy": "Never",
        "securityContext": CONFINED_POD,
        "containers": [container],
        "volumes": [{"name": "files", "configMap": {"name": files}}, {"name": "tmp", "emptyDir": {}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def last_words(pod: Object) -> str:
    """What the container of an ended pod wrote to its termination log."""
    [status] = pod["status"]["containerStatuses"]
    return str(status["state"]["terminated"].get("message", ""))
