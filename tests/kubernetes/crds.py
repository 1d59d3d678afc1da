"""Minimal CustomResourceDefinitions of the kinds that the chart may make, for clusters that lack them.

Written from the kinds' public names. They check nothing below ``spec``: the published schemas are checked without a
cluster (tests/deploy/chart/custom_resources.py). KUBE_CRDS names a folder with the projects' own.
"""

import json
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Kind:
    """A kind of another project."""

    project: str
    group: str
    version: str
    name: str
    plural: str

    @property
    def api_version(self) -> str:
        """As an object names it."""
        return f"{self.group}/{self.version}"


KINDS: Final = (
    Kind("KEDA", "keda.sh", "v1alpha1", "ScaledObject", "scaledobjects"),
    Kind("Prometheus operator", "monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"),
    Kind("Prometheus operator", "monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
    Kind("Prometheus operator", "monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
    Kind("Gateway API", "gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"),
    Kind("External Secrets", "external-secrets.io", "v1", "ExternalSecret", "externalsecrets"),
    Kind("cert-manager", "cert-manager.io", "v1", "Certificate", "certificates"),
    Kind("KubeRay", "ray.io", "v1", "RayJob", "rayjobs"),
)


def definition(kind: Kind) -> str:
    """The definition as JSON, which is YAML."""
    free: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": free, "status": free}}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower()}
    # Groups of k8s.io are protected: without this annotation the API server refuses a definition.
    annotations = {"api-approved.kubernetes.io": "unapproved, a stand-in of a test"}
    return json.dumps(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.plural}.{kind.group}", "annotations": annotations},
            "spec": {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]},
        }
    )
