"""Wrong values are refused with the reason."""

import helm_python as helm
import pytest

from tests.deploy.chart.chart_release import Rendered, Values, changed

REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "misspelt": ({"gatewy": {}}, "additional properties 'gatewy' not allowed"),
    "misspelt-below": ({"gateway.replica": 3}, "additional properties 'replica' not allowed"),
    "misspelt-in-a-model": ({"inference.models": [{"name": "a", "model": "b", "gpu": 1}]}, "'gpu' not allowed"),
    "no-redis": ({"redis.url": ""}, "redis.url is needed"),
    "no-redis-scheme": ({"redis.url": "redis.example"}, "/redis/url"),
    "password-in-a-url": ({"redis.url": "redis://:secret@redis:6379"}, "/redis/url"),
    "sentinels-password-in-a-url": ({"redis.url": "redis+sentinel://s/main?sentinel_password=x"}, "/redis/url"),
    "copies-without-replicas": ({"redis": {"enabled": True, "ackCopies": 1}}, "runs one Redis without replicas"),
    "no-qdrant": ({"qdrant.url": ""}, "qdrant.url is needed"),
    "two-redises": ({"redis.enabled": True}, "redis.enabled makes a Redis of the release's own"),
    "two-qdrants": ({"qdrant.enabled": True}, "qdrant.enabled makes a Qdrant of the release's own"),
    "grpc-of-many": ({"qdrant": {"url": "http://a:1,http://b:1", "grpcPort": 6334}}, "qdrant.url with one address"),
    "copies-of-one-qdrant": ({"qdrant": {"enabled": True, "copies": 2}}, "qdrant.enabled runs one Qdrant"),
    "more-acknowledged-than-there-are": ({"qdrant.writeConsistency": 2}, "no write could be acknowledged"),
    "half-a-list": ({"qdrant.url": "http://a:6333,b:6333"}, "/qdrant/url"),
    "no-secret": ({"secrets.existingSecret": ""}, "secrets.existingSecret is needed"),
    "two-secrets": (
        {"secrets.externalSecret": {"enabled": True, "storeName": "vault"}},
        "secrets.externalSecret makes the Secret",
    ),
    "no-store": ({"secrets": {"externalSecret": {"enabled": True}}}, "secrets.externalSecret.storeName is needed"),
    "users-headers-without-keys": (
        {"gateway.userHeaders": ["X-User"]},
        "gateway.userHeaders needs gateway.userHeaderKeys",
    ),
    "a-path-that-ends-in-a-slash": ({"gateway.rootPath": "/memloop/"}, "/gateway/rootPath"),
    "no-engine": ({"inference.models": []}, "engine.urls is needed when inference.models is empty"),
    "models-without-router": (
        {"inference.models": [{"name": "a", "model": "A"}, {"name": "b", "model": "B"}]},
        r"inference.models serve different models \(A, B\): set engine.urls to a router",
    ),
    "odd-gpus": ({"inference.defaults": {"gpus": 3, "dataParallelSize": 2}}, "must be a multiple of dataParallelSize"),
    "no-gpu": ({"inference.defaults": {"gpus": 0}}, "vllm needs a GPU: with gpus 0 the engine is vllm-cpu"),
    "slices-as-one-gpu": (
        {"inference.defaults": {"gpus": 2, "gpuResource": "nvidia.com/mig-3g.40gb"}},
        "a process sees one slice of a GPU alone",
    ),
    "slices-as-a-trainers-gpus": (
        {
            "trainer": {
                "enabled": True,
                "entrypoint": "train",
                "workers": {"gpus": 2, "replicas": 1, "gpuResource": "nvidia.com/mig-3g.40gb"},
            }
        },
        "exchange no gradients",
    ),
    "a-slice-of-each-trainer": (
        {
            "trainer": {
                "enabled": True,
                "entrypoint": "train",
                "workers": {"gpus": 1, "replicas": 2, "gpuResource": "nvidia.com/mig-3g.40gb"},
            }
        },
        "exchange no gradients",
    ),
    "stuck-rollout": ({"inference.defaults": {"maxSurge": 0}}, "nothing could be replaced"),
    "no-registry": ({"image.registry": ""}, "image.registry is needed"),
    "registry-without-slash": ({"image.registry": "registry.example.com"}, "/image/registry"),
    "claim-for-one-node": (
        {"inference.defaults": {"replicas": 2, "cache": {"existingClaim": "weights"}}},
        "main: several replicas share cache.existingClaim",
    ),
    "no-prometheus": ({"worker.autoscaling": {"mode": "queue"}}, "keda.prometheusUrl is needed"),
    "unknown-mode": ({"gateway.autoscaling": {"mode": "queue"}}, "/gateway/autoscaling/mode"),
    "no-gateway": ({"httpRoute.enabled": True}, "httpRoute.parentRefs is needed"),
    "revision-of-nothing": ({"secrets.revisions": {"MEMLOOP_STOREKEY": "2"}}, "no pod reads a key MEMLOOP_STOREKEY"),
    "queue-elsewhere": (
        {"trainer": {"enabled": True, "entrypoint": "train", "queueName": "q", "clusterSelector": {"a": "b"}}},
        "KubeRay suspends no job on a RayCluster that is there",
    ),
    "setting-of-the-chart-again": (
        {"gateway.extraEnv": [{"name": "MEMLOOP_PORT", "value": "1"}]},
        "/gateway/extraEnv/0/name",
    ),
    "label-of-the-chart": (
        {"gateway.podLabels": {"app.kubernetes.io/name": "x"}},
        "invalid propertyName 'app.kubernetes.io/name'",
    ),
    "no-mount": ({"gateway.extraVolumeMounts": [{"name": "a", "mountPath": "here"}]}, "mountPath"),
    "no-number": ({"gateway.replicas": "two"}, "/gateway/replicas"),
    "no-replica": ({"worker.replicas": 0}, "/worker/replicas"),
    "no-quantity": ({"redis.size": "8 GB"}, "/redis/size"),
    "secret-as-a-setting": ({"gateway.env": {"MEMLOOP_API_KEYS": "acme:00"}}, "/gateway/env/MEMLOOP_API_KEYS"),
    "setting-of-the-chart": ({"worker.env": {"MEMLOOP_PORT": "1"}}, "/worker/env/MEMLOOP_PORT"),
    "no-setting": ({"memoryStore.env": {"PATH": "/x"}}, "additional properties 'PATH'"),
    "no-command": ({"trainer.enabled": True}, "trainer.entrypoint is needed"),
    "suspended-elsewhere": (
        {"trainer": {"enabled": True, "entrypoint": "train", "suspend": True, "clusterSelector": {"a": "b"}}},
        "KubeRay suspends no job on a RayCluster that is there",
    ),
    "no-share": ({"limits.tenantShare": 1.5}, "/limits/tenantShare"),
    "no-body": ({"limits.maxJsonBytes": 0}, "/limits/maxJsonBytes"),
    "misspelt-limit": ({"limits.maxFollower": 5}, "'maxFollower' not allowed"),
    "metrics-elsewhere": ({"gateway.env": {"MEMLOOP_METRICS_PORT": "1"}}, "/gateway/env/MEMLOOP_METRICS_PORT"),
    "no-digest": ({"images.gateway.digest": "latest"}, "/images/gateway/digest"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_values_are_refused_with_the_reason(chart: Rendered, minimal: Values, case: str) -> None:
    changes, complaint = REFUSED[case]
    values = minimal
    for path, new in changes.items():
        values = changed(values, path, new)
    with pytest.raises(helm.HelmError, match=complaint):
        chart.objects(values)
