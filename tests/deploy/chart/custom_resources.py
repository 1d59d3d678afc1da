"""Schemas of custom resources: of KEDA and the Prometheus operator as published, of the others the part that we write.

Both refuse what they do not know: a misspelt field of a custom resource is dropped by the API server without a word.
"""

from typing import Any, TypeAlias, cast

import jsonschema
import kubernetes_validate  # pyright: ignore[reportMissingTypeStubs]
from cloudcoil.models.keda.v1alpha1 import ScaledObject
from cloudcoil.models.prometheus_operator.v1 import PodMonitor, PrometheusRule, ServiceMonitor

from tests.deploy.chart.chart_release import Object, ray_pods

Schema: TypeAlias = dict[str, Any]
PUBLISHED = {model.__name__: model for model in (PodMonitor, PrometheusRule, ScaledObject, ServiceMonitor)}
_TEXT: Schema = {"type": "string", "minLength": 1}
_STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
_COUNT: Schema = {"type": "integer", "minimum": 0}


class UnknownField(ValueError):
    """A custom resource has a field that its schema does not know."""


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


def _list(of: Schema, most: int = 64) -> Schema:
    return {"type": "array", "items": of, "minItems": 1, "maxItems": most}


_GROUP = {"rayStartParams": _STRINGS, "template": {"type": "object", "required": ["spec"]}}
_PARENT = _object(
    ("name",),
    group={"type": "string"},
    kind=_TEXT,
    namespace=_TEXT,
    name=_TEXT,
    sectionName=_TEXT,
    port=_PORT,
)
_DURATION: Schema = {"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$"}
_PATH = _object(("type", "value"), type={"enum": ["Exact", "PathPrefix", "RegularExpression"]}, value=_TEXT)
_RULE = _object(
    ("backendRefs",),
    matches=_list(_object((), path=_PATH)),
    timeouts=_object((), request=_DURATION, backendRequest=_DURATION),
    backendRefs=_list(_object(("name", "port"), name=_TEXT, port=_PORT), 16),
)
WRITTEN: dict[tuple[str, str], Schema] = {
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): _object(
        ("parentRefs", "rules"), parentRefs=_list(_PARENT, 32), hostnames=_list(_TEXT, 16), rules=_list(_RULE, 16)
    ),
    ("external-secrets.io/v1", "ExternalSecret"): _object(
        ("secretStoreRef", "target", "dataFrom"),
        refreshInterval=_TEXT,
        secretStoreRef=_object(("kind", "name"), kind={"enum": ["SecretStore", "ClusterSecretStore"]}, name=_TEXT),
        target=_object(("name",), name=_TEXT, creationPolicy={"enum": ["Owner", "Orphan", "Merge", "None"]}),
        dataFrom=_list(_object(("extract",), extract=_object(("key",), key=_TEXT))),
    ),
    ("cert-manager.io/v1", "Certificate"): _object(
        ("secretName", "issuerRef", "dnsNames"),
        secretName=_TEXT,
        issuerRef=_object(("name",), name=_TEXT, kind={"enum": ["Issuer", "ClusterIssuer"]}, group=_TEXT),
        duration=_DURATION,
        renewBefore=_DURATION,
        dnsNames=_list({"type": "string", "pattern": r"^[a-z0-9.-]{1,253}$"}),
        usages=_list({"enum": ["digital signature", "key encipherment", "server auth", "client auth"]}),
        privateKey=_object(
            (),
            algorithm={"enum": ["RSA", "ECDSA", "Ed25519"]},
            size=_COUNT,
            rotationPolicy={"enum": ["Never", "Always"]},
        ),
    ),
    ("ray.io/v1", "RayJob"): _object(
        ("entrypoint",),
        entrypoint=_TEXT,
        submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"]},
        suspend={"type": "boolean"},
        activeDeadlineSeconds=_COUNT,
        clusterSelector=_STRINGS,
        shutdownAfterJobFinishes={"type": "boolean"},
        ttlSecondsAfterFinished=_COUNT,
        rayClusterSpec=_object(
            ("headGroupSpec",),
            rayVersion=_TEXT,
            authOptions=_object(("mode",), mode={"enum": ["disabled", "token"]}),
            headGroupSpec=_object(("rayStartParams", "template"), **_GROUP),
            workerGroupSpecs=_list(
                _object(
                    ("groupName", "template"),
                    groupName=_TEXT,
                    replicas=_COUNT,
                    minReplicas=_COUNT,
                    maxReplicas=_COUNT,
                    **_GROUP,
                )
            ),
        ),
    ),
}


def validate_custom(found: Object, version: str) -> None:
    """Raises jsonschema.ValidationError, pydantic.ValidationError or UnknownField; KeyError without a schema."""
    if found["kind"] in PUBLISHED:
        _validate_published(found)
        return
    jsonschema.validate(found["spec"], WRITTEN[found["apiVersion"], found["kind"]])
    if found["kind"] == "RayJob":
        for group, pod in ray_pods(found):
            template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": group}, "template": pod}
            kubernetes_validate.validate(template, version, strict=True)


def _validate_published(found: Object) -> None:
    model = PUBLISHED[found["kind"]].model_validate(found)
    kept = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    lost = _lost(found["spec"], kept["spec"], "spec")
    if lost:
        raise UnknownField(f"{found['kind']} knows no {', '.join(lost)}")


def _lost(given: object, kept: object, path: str) -> list[str]:
    """The paths of what a model did not take over."""
    if isinstance(given, dict):
        before, after = cast(Object, given), cast(Object, kept)
        unknown = [f"{path}.{key}" for key in before if key not in after]
        known = [key for key in before if key in after]
        return unknown + [one for key in known for one in _lost(before[key], after[key], f"{path}.{key}")]
    if isinstance(given, list):
        pairs = enumerate(zip(cast(list[object], given), cast(list[object], kept), strict=True))
        return [one for at, (before, after) in pairs for one in _lost(before, after, f"{path}[{at}]")]
    return []
