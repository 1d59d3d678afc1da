"""The forms of values that several places of the chart share, as JSON Schema."""

from typing import Any

_TEXT = {"type": "string", "minLength": 1}
_QUANTITY = {"type": ["string", "integer"], "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"}
_STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
_QUANTITIES = {"type": "object", "additionalProperties": {"$ref": "#/$defs/quantity"}}
_DIALECTS = (
    "openai",
    "azure",
    "anthropic",
    "gemini",
    "ollama",
    "llama.cpp",
    "lmstudio",
    "openrouter",
    "vllm",
    "sglang",
)
_PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
_PORTS = {"type": "array", "minItems": 1, "items": _PORT}
_PEERS = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/peer"}}
_SELECTOR = {"type": "object", "additionalProperties": False}
_OWNED = (
    "API_KEYS",
    "DATA_DIR",
    "DRAIN_S",
    "ENGINE",
    "ENGINE_API_KEY",
    "ENGINE_FALLBACK_URLS",
    "ENGINE_HOST",
    "ENGINE_PORT",
    "ENGINE_URL",
    "HOST",
    "INFERENCE_URL",
    "METRICS_PORT",
    "MODEL",
    "MODELS",
    "MODEL_PATH",
    "PORT",
    "QDRANT_REPLICAS",
    "QDRANT_SHARDS",
    "QDRANT_WRITE_CONSISTENCY",
    "REDIS_ACK_COPIES",
    "REDIS_URL",
    "SERVE_DATA_PARALLEL_SIZE",
    "SERVE_EXTRA_ARGS",
    "SERVE_NAME",
    "SERVE_START_TIMEOUT_S",
    "SERVE_STOP_TIMEOUT_S",
    "SERVE_TENSOR_PARALLEL_SIZE",
    "STARTUP_WAIT_S",
    "STOP_GRACE_S",
    "STOP_WAIT_S",
    "STORAGE_URL",
    "STORE_KEY",
    "STORE_URL",
    "WEBHOOK_SECRET",
)
"""Settings that the chart itself makes from other values, or that are secret."""


def _object(required: tuple[str, ...], **properties: object) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


_LABEL_SELECTOR = _SELECTOR | {
    "properties": {
        "matchLabels": _STRINGS,
        "matchExpressions": {
            "type": "array",
            "items": _object(
                ("key", "operator"),
                key=_TEXT,
                operator={"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                values={"type": "array", "items": {"type": "string"}},
            ),
        },
    }
}

_FREE: dict[str, Any] = {"type": "object", "additionalProperties": True}
_VARIABLE = {
    "type": "string",
    "pattern": "^[A-Za-z_][A-Za-z0-9_]*$",
    "not": {"enum": [f"MEMLOOP_{name}" for name in _OWNED]},
}

DEFINITIONS: dict[str, dict[str, Any]] = {
    "quantity": _QUANTITY,
    "engineUrl": {"type": "string", "pattern": r"^https?(\+srv)?://.+"},
    "strings": _STRINGS,
    "resources": _object(("requests", "limits"), requests=_QUANTITIES, limits=_QUANTITIES),
    "image": _object(
        ("registry", "repository", "tag", "digest"),
        registry={"type": "string", "pattern": "^(.*/)?$"},
        repository=_TEXT,
        tag={"type": "string"},
        digest={"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
    ),
    "settings": {
        "type": "object",
        "additionalProperties": False,
        "patternProperties": {
            "^(MEMLOOP|OTEL|HF|VLLM|SGLANG|NCCL)_[A-Z0-9_]+$": {"type": ["string", "number", "boolean"]}
        },
        "properties": {f"MEMLOOP_{name}": False for name in _OWNED},
    },
    "envVars": {
        "type": "array",
        "items": _object(("name",), name=_VARIABLE, value={"type": "string"}, valueFrom=_FREE | {"minProperties": 1}),
    },
    "volumes": {"type": "array", "items": _FREE | {"required": ["name"], "properties": {"name": _TEXT}}},
    "mounts": {
        "type": "array",
        "items": _object(
            ("name", "mountPath"),
            name=_TEXT,
            mountPath={"type": "string", "pattern": "^/"},
            subPath=_TEXT,
            subPathExpr=_TEXT,
            readOnly={"type": "boolean"},
        ),
    },
    "containers": {
        "type": "array",
        "items": _FREE | {"required": ["name", "image"], "properties": {"name": _TEXT, "image": _TEXT}},
    },
    "podLabels": _STRINGS | {"propertyNames": {"not": {"pattern": r"^(app\.kubernetes\.io|memloop)/"}}},
    "toleration": _object(
        (),
        key={"type": "string"},
        operator={"enum": ["Exists", "Equal"]},
        value={"type": "string"},
        effect={"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
        tolerationSeconds={"type": "integer"},
    ),
    "opening": _object((), peers=_PEERS, ports=_PORTS),
    "namedOpening": _object(("peers", "ports"), peers=_PEERS, ports=_PORTS),
    "peer": _object(
        (),
        ipBlock=_object(("cidr",), cidr=_TEXT, **{"except": {"type": "array", "items": _TEXT}}),
        namespaceSelector=_LABEL_SELECTOR,
        podSelector=_LABEL_SELECTOR,
    )
    | {"minProperties": 1},
    "parentRef": _object(
        ("name",),
        group={"type": "string"},
        kind=_TEXT,
        namespace=_TEXT,
        name=_TEXT,
        sectionName=_TEXT,
        port=_PORT,
    ),
    "registered": _object(
        ("id",),
        id={"type": "string", "pattern": "^[A-Za-z0-9_.:/@+-]{1,128}$"},
        inference=_TEXT,
        engineUrls={"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/engineUrl"}},
        engineModel=_TEXT,
        keySecret=_object(("name", "key"), name=_TEXT, key=_TEXT),
        dialect={"enum": ["auto", *_DIALECTS]},
        profile=_TEXT,
        profileConfigMap=_TEXT,
        windowTokens={"type": "integer", "minimum": 1},
        ownedBy=_TEXT,
        created={"type": "integer", "minimum": 0},
    )
    | {"oneOf": [{"required": ["inference"]}, {"required": ["engineUrls"]}]},
    "model": _object(
        ("name", "model"),
        name={"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$"},
        model=_TEXT,
    ),
}
