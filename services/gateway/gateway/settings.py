"""The environment variables of the gateway and its worker. All names have the prefix ``MEMLOOP_``."""

import base64
import binascii
import importlib
import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Final, Self, TypeAlias

from pydantic import AfterValidator, Field, SecretStr, TypeAdapter, ValidationError, model_validator
from pydantic_settings import SettingsConfigDict

from memloop.wire.policy import ALL_KINDS, Kind, KindNames, kinds_of
from memloop_clients import DialectName, balanced_urls, plain_url, urls_in
from memloop_service import ServiceSettings

MIB = 1024 * 1024
DAY_S = 24 * 3600
WEBHOOK_KEY_PREFIX: Final = "whsec_"
_KIND_NAMES: Final = TypeAdapter[KindNames](KindNames)
_ORIGIN: Final = re.compile(r"https?://(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::\d{1,5})?")
_PREFIX: Final = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_PATHS: Final = frozenset({"v1", "v2", "v3", "mcp", "console", "docs"})
_SECRET_BYTES: Final = range(24, 65)


def origins_in(value: str) -> str:
    """Check origins, comma-separated. Raises ValueError for one with more or less than scheme, host and port."""
    for origin in filter(None, value.split(",")):
        if _ORIGIN.fullmatch(origin) is None:
            raise ValueError(f"{origin[:80]!r} is no origin, such as https://app.example or http://localhost:3000")
    return value


def path_prefix(value: str) -> str:
    """Check the path below which a proxy serves the API. Raises ValueError."""
    path = value.rstrip("/")
    if path and (_PREFIX.fullmatch(path) is None or path.split("/")[1] in _OWN_PATHS):
        raise ValueError("must be a path such as /memloop, and not begin with a path of the API")
    return path


def header_names(value: str) -> str:
    """Check names of headers, comma-separated. Raises ValueError."""
    for name in names_in(value):
        if _HEADER.fullmatch(name) is None:
            raise ValueError(f"{name[:80]!r} is no header's name")
    return value


def names_in(value: str) -> tuple[str, ...]:
    """Return the names of a comma-separated list."""
    return tuple(name.strip() for name in value.split(",") if name.strip())


Price: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Network: TypeAlias = IPv4Network | IPv6Network
Origins: TypeAlias = Annotated[str, AfterValidator(origins_in)]
BalancedUrls: TypeAlias = Annotated[str, AfterValidator(balanced_urls)]


class GatewaySettings(ServiceSettings):
    """Settings of the API. Times are in seconds. An empty variable counts as unset."""

    model_config = SettingsConfigDict(env_ignore_empty=True)

    port: int = 7800
    max_body_bytes: int = Field(default=64 * MIB, gt=0)
    """Of a document, a batch of memories, an import, an MCP request."""
    max_json_bytes: int = Field(default=16 * MIB, gt=0)
    """Of any other body; at most ``max_body_bytes`` in any case."""

    cors_origins: Origins = ""
    """The origins of pages that may call the API from a browser, comma-separated, such as ``https://app.example``."""

    root_path: Annotated[str, AfterValidator(path_prefix)] = ""
    """The path below which a proxy serves the API, such as ``/memloop``; the proxy may remove it or leave it."""

    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    redis_timeout_s: float = Field(default=5.0, gt=0)
    redis_ack_copies: int = Field(default=0, ge=0)
    """The replicas that must have a write before a client gets its acknowledgement."""
    redis_full_share: float = Field(default=0.9, gt=0, le=1)
    """Of Redis' memory; above it no new job is taken, so that those that are queued can be done."""
    tenant_queue_share: float = Field(default=0.5, gt=0, le=1)
    """Of that share; above it a tenant's queued jobs hold, and no new one of it is taken."""
    tenant_weights: str = ""
    """The jobs that a tenant gives per turn, comma-separated: ``acme=4,beta=2``. Others give one."""

    store_url: BalancedUrls = "http://127.0.0.1:7801"
    """Several URLs, comma-separated, are replicas; so are the addresses of a name that has several."""
    store_key: SecretStr | None = None
    recall_timeout_s: float = Field(default=6.0, gt=0)
    enqueue_timeout_s: float = Field(default=5.0, gt=0)
    """Both longer than a disk holds up Redis or the store: such a pause makes a chat slow and costs it no memory."""

    engine_url: BalancedUrls = "http://127.0.0.1:7803/v1"
    """Several URLs, comma-separated, are replicas; so are the addresses of a name that has several."""
    engine_fallback_urls: BalancedUrls = ""
    """More engines, comma-separated, tried in order while the previous ones fail. All share a key and models."""
    engine_api_key: SecretStr | None = None
    engine_connect_timeout_s: float = Field(default=5.0, gt=0)
    engine_read_timeout_s: float = Field(default=600.0, gt=0)
    engine_total_timeout_s: float = Field(default=3600.0, gt=0)
    engine_breaker_failures: int = Field(default=5, ge=1)
    engine_breaker_open_s: float = Field(default=5.0, gt=0)
    """After this many connection failures in a row, requests to the engine are suspended for this long."""
    engine_dialect: DialectName = "auto"
    """The request fields that the engines accept. ``auto`` detects the engine and adapts to the fields it rejects."""

    models: Path | None = None
    """A file of several models; the settings of one engine and one model then have no effect."""
    inference_url: Annotated[str, AfterValidator(plain_url)] | None = None
    profile: str | None = None
    tokenizer: Path | None = None
    model: str | None = None
    window_tokens: int | None = Field(default=None, gt=0)
    """The model's window, for an endpoint that does not state it; chunks, memories and replies of the loops fit it."""
    startup_wait_s: float = Field(default=120.0, ge=0)
    """How long after its start a process without a model is not ready; it serves memory from the start."""

    api_keys: SecretStr = SecretStr("")
    api_keys_file: Path | None = None
    keys_stale_s: float = Field(default=300.0, ge=0)
    """How long cached API keys remain valid while Redis is unreachable."""

    max_active_requests: int = Field(default=512, ge=1)
    max_batch_requests: int = Field(default=64, ge=0)
    """The number of active requests that may be long reads."""
    max_active_bytes: int = Field(default=1024 * MIB, gt=0)
    """The limit on the bodies of all active requests together; at least ``max_body_bytes``."""
    tenant_share: float = Field(default=0.75, gt=0, le=1)
    """One tenant's share of these three limits, where there are keys; one whole body always fits."""
    requests_per_minute: int = Field(default=0, ge=0)
    tokens_per_minute: int = Field(default=0, ge=0)
    """Limit per API key; 0 means unlimited."""
    idempotency_max_bytes: int = Field(default=MIB, ge=0)
    """The longest response that is stored for an ``Idempotency-Key``."""
    long_context_max_calls: int = Field(default=200, ge=1)
    long_context_deadline_s: float = Field(default=300.0, gt=0)
    """The limits on reading the parts of one chat that exceed the window."""
    heartbeat_s: float = Field(default=15.0, gt=0)

    memory_for_users: bool = False
    """Whether a chat that names a user has memory although it does not ask for it."""

    user_headers: Annotated[str, AfterValidator(header_names)] = ""
    """Headers in which chat front ends name their users, comma-separated, such as ``X-OpenWebUI-User-Id``."""
    user_header_keys: str = ""
    """The ids of the keys that may do so, comma-separated: of a configured key the first 16 digits of its hash."""

    max_document_chars: int = Field(default=16_000_000, ge=1)
    """The longest document in a request body; upload longer ones as files."""
    storage_url: str | None = None
    """``file:///folder`` or ``s3://bucket/prefix`` for files and documents, the same for the API and its workers."""
    max_file_bytes: int = Field(default=512 * MIB, gt=0)
    tenant_storage_bytes: int = Field(default=20 * 1024 * MIB, gt=0)
    tenant_files: int = Field(default=10_000, gt=0)
    file_wait_s: float = Field(default=60.0, ge=0)
    """How long a read waits for the text of a newly uploaded file."""
    fetch_urls: bool = False
    """Whether clients may have documents downloaded from URLs, whose addresses must be public."""
    fetch_allow_networks: str = ""
    """Non-public networks from which documents may be downloaded, comma-separated."""
    fetch_timeout_s: float = Field(default=60.0, gt=0)
    """How long a whole download may take."""
    long_read_keep_s: float = Field(default=7 * DAY_S, ge=60)
    """How long a finished read, its memory, answer and events remain available."""
    memory_event_keep_s: float = Field(default=7 * DAY_S, ge=60)
    """How long the event of a finished memory write remains available. The memories stay."""
    max_followers: int = Field(default=1024, ge=1)
    tenant_followers: int = Field(default=512, ge=1)
    """Event streams of background reads that the process serves at a time, in all and per tenant."""
    sync_wait_s: float = Field(default=60.0, gt=0)
    """How long a memory add with ``sync`` waits for its event before it answers 202."""

    response_keep_s: float = Field(default=30 * DAY_S, ge=60)
    """How long a stored response or a conversation remains available after it was made or last continued."""
    tenant_response_bytes: int = Field(default=256 * MIB, ge=1)
    """The most bytes that one tenant's stored responses hold in Redis."""
    response_chain: int = Field(default=500, ge=1)
    """The most stored responses that one response continues."""
    tenant_conversations: int = Field(default=10_000, ge=1)
    tenant_conversation_bytes: int = Field(default=256 * MIB, ge=1)
    """The most conversations of one tenant, and the most bytes that they hold in Redis."""
    conversation_items: int = Field(default=1000, ge=1, le=5000)
    """The most items of one conversation."""
    tenant_vector_stores: int = Field(default=1000, ge=1, le=10_000)
    vector_store_files: int = Field(default=1000, ge=1, le=10_000)
    vector_store_bytes: int = Field(default=64 * MIB, ge=1)
    """The most vector stores of one tenant, and the most files of one and bytes of their texts."""
    engine_responses: bool = False
    """Whether the engines speak the Responses API: requests without memory and state then pass through."""

    trace_keep_s: float = Field(default=30 * DAY_S, ge=60)
    tenant_traces: int = Field(default=10_000, ge=1)
    """How long, and how many, training traces are kept for a tenant that opted in."""
    max_trace_chars: int = Field(default=MIB, ge=1)
    """Longer traces are discarded."""
    trace_redactor: str = ""
    """``package.module:function`` that returns a function from text to redacted text; empty: the built-in redactor."""

    redact: str = "secrets,card"
    """The kinds and groups of values redacted before a memory is stored, comma-separated, or ``off``; policies may
    decide otherwise."""
    memory_detector: str = ""
    """``package.module:function`` that finds sensitive values in the place of the built-in rules."""

    memory_policy_file: Path | None = None
    """A TOML file with the operator's memory policies: for all tenants, and by tenant, agent and user."""

    prices: Mapping[str, tuple[Price, Price]] = {}
    """A model's prices of a million input and output tokens, in your currency: ``{"qwen3-8b": [0.1, 0.4]}``."""

    console: Path | None = None
    """A folder with a built console, in the place of the packaged one."""

    webhook_secret: SecretStr | None = None
    """``whsec_`` and the base64 of 24 to 64 random bytes. To rotate it, set the new one, a comma and the old one."""
    webhook_allow_http: bool = False
    webhook_allow_networks: str = ""
    """Non-public networks that webhooks may reach, comma-separated: ``10.1.0.0/16,127.0.0.1``."""

    @property
    def look_s(self) -> float:
        """How long one read waits for the next entry of a stream: for less than a connection waits for its reply."""
        return min(1.0, self.redis_timeout_s / 2)

    @property
    def engines(self) -> tuple[str, ...]:
        """The base URLs of all engines, in order; of the first engine's replicas, the first."""
        return (urls_in(self.engine_url)[0], *urls_in(self.engine_fallback_urls))

    @property
    def stores(self) -> tuple[str, ...]:
        """The base URLs of the store's replicas."""
        return urls_in(self.store_url)

    @model_validator(mode="after")
    def _checked(self) -> Self:
        if not urls_in(self.engine_url) or not self.stores:
            raise ValueError("MEMLOOP_ENGINE_URL and MEMLOOP_STORE_URL need a URL")
        if self.max_active_bytes < self.max_body_bytes:
            raise ValueError("MEMLOOP_MAX_ACTIVE_BYTES must be at least MEMLOOP_MAX_BODY_BYTES")
        networks_of(self.webhook_allow_networks)
        networks_of(self.fetch_allow_networks)
        webhook_keys_of(secret_of(self.webhook_secret) or "")
        weights_of(self.tenant_weights)
        if self.api_keys.get_secret_value() and self.api_keys_file is not None:
            raise ValueError("set MEMLOOP_API_KEYS or MEMLOOP_API_KEYS_FILE, not both")
        has_keys = self.api_keys.get_secret_value() or self.api_keys_file is not None
        _ = self.redacted_kinds
        if self.trace_redactor:
            function_at(self.trace_redactor, setting="MEMLOOP_TRACE_REDACTOR")
        if self.memory_detector:
            function_at(self.memory_detector, setting="MEMLOOP_MEMORY_DETECTOR")
        if self.user_headers and has_keys and not self.user_header_keys:
            raise ValueError("MEMLOOP_USER_HEADERS needs MEMLOOP_USER_HEADER_KEYS: the keys that may name users")
        return self

    @property
    def redacted_kinds(self) -> frozenset[Kind]:
        """The kinds of values that are redacted where no policy decides."""
        names = () if self.redact.strip() == "off" else tuple(map(str.strip, self.redact.split(",")))
        try:
            return kinds_of(_KIND_NAMES.validate_python(names))
        except ValidationError as error:
            known = ", ".join(("secrets", "personal", *sorted(ALL_KINDS)))
            raise ValueError(f"MEMLOOP_REDACT: {self.redact!r} is not off, nor some of {known}") from error


class WorkerSettings(GatewaySettings):
    """Settings of the worker: the API's, and those of job processing. Times are in seconds."""

    port: int = 7804
    worker_concurrency: int = Field(default=8, ge=1)
    job_attempts: int = Field(default=5, ge=1)
    job_idle_s: float = Field(default=30.0, gt=0)
    """After this time without a heartbeat, a worker's job goes to another worker."""
    lane_ttl_s: float = Field(default=30.0, gt=0)
    """How long a namespace's write lock outlives its worker."""
    job_retry_s: float = Field(default=1.0, gt=0)
    """The delay before the second attempt; it doubles up to a minute."""
    job_poll_s: float = Field(default=1.0, gt=0, le=4.0)
    """How long one poll for new jobs blocks; below ``redis_timeout_s``."""
    dead_letter_keep_s: float = Field(default=30 * DAY_S, ge=60)
    """How long a dead letter can be requeued, and a memory write that was kept verbatim be decided again."""
    memory_redecisions: int = Field(default=1, ge=0, le=100)
    """How often a write that was kept verbatim is decided again by itself, once the writer has decided another one."""
    stop_wait_s: float = Field(default=10.0, ge=0)
    """How long running jobs may continue after the worker gets a stop signal."""
    buffer_flush_turns: int = Field(default=20, ge=1, le=100)
    """A buffer of this many turns is settled: added or ignored."""
    buffer_flush_tokens: int | None = Field(default=None, ge=1)
    """A buffer of this many tokens is settled as well; the default and maximum is the next decision's room."""
    buffer_flush_age_s: float = Field(default=3600.0, gt=0)
    """A buffer without new turns for this long is settled."""
    read_concurrency: int = Field(default=4, ge=1)
    """Background reads at a time, and as many background responses."""
    extract_concurrency: int = Field(default=2, ge=1)
    """Text extractions at a time; one more runs for a tenant that has none running."""
    extract_memory_bytes: int = Field(default=1024 * MIB, gt=0)
    """The address space of the process that extracts one file's text."""
    extract_base_cpu_s: int = Field(default=5, ge=1)
    extract_cpu_s_per_mib: int = Field(default=10, ge=0)
    """CPU time of a file: the base and so much for each MiB of its size, at most ``extract_cpu_s``."""
    extract_cpu_s: int = Field(default=120, ge=1)
    extract_wall_s: float = Field(default=300.0, gt=0)
    ocr: str = Field(default="", pattern=r"^([A-Za-z_]{2,20}(\+[A-Za-z_]{2,20}){0,9})?$")
    """Tesseract's languages for pictures and scanned pages (``eng+deu``); empty, files of pictures are refused."""
    max_text_bytes: int = Field(default=1024 * MIB, gt=0)
    """The longest text extracted from a file."""
    webhook_concurrency: int = Field(default=16, ge=1)
    webhook_attempts: int = Field(default=12, ge=1)
    webhook_retry_s: float = Field(default=5.0, gt=0)
    """The delay before the second attempt; it doubles up to an hour."""
    webhook_timeout_s: float = Field(default=15.0, gt=0)
    """The timeout of one attempt."""
    memory_webhook_poll_s: float = Field(default=1.0, gt=0)
    """How often a worker looks for changes to send to memory webhooks."""
    sweep_every_s: float = Field(default=60.0, gt=0)


def secret_of(value: SecretStr | None) -> str | None:
    """Return the secret's plain text, or None when it is unset."""
    return value.get_secret_value() if value is not None else None


def weights_of(text: str) -> Mapping[str, int]:
    """Parse comma-separated tenants and weights: ``acme=4,beta=2``. Raises ValueError."""
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    if not all(tenant and weight.isdecimal() and int(weight) > 0 for tenant, _, weight in pairs):
        raise ValueError("MEMLOOP_TENANT_WEIGHTS needs tenant=weight, comma-separated, with weights from 1")
    return {tenant: int(weight) for tenant, _, weight in pairs}


def networks_of(text: str) -> tuple[Network, ...]:
    """Parse comma-separated networks or addresses. Raises ValueError."""
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def webhook_keys_of(text: str) -> tuple[bytes, ...]:
    """Parse comma-separated webhook secrets (``whsec_`` and base64). Raises ValueError."""
    keys: list[bytes] = []
    for part in filter(None, map(str.strip, text.split(","))):
        try:
            key = base64.b64decode(part.removeprefix(WEBHOOK_KEY_PREFIX), validate=True)
        except binascii.Error:
            key = b""
        if not part.startswith(WEBHOOK_KEY_PREFIX) or len(key) not in _SECRET_BYTES:
            least, most = _SECRET_BYTES[0], _SECRET_BYTES[-1]
            form = f"{WEBHOOK_KEY_PREFIX} and base64 of {least} to {most} bytes"
            raise ValueError(f"MEMLOOP_WEBHOOK_SECRET must be {form}")
        keys.append(key)
    return tuple(keys)


def function_at(name: str, *, setting: str) -> Callable[..., object]:
    """Import the function that a setting names as ``package.module:function``. Raises ValueError."""
    module, _, attribute = name.partition(":")
    try:
        found: object = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{setting}: cannot import {name!r} ({error})") from error
    if not callable(found):
        raise ValueError(f"{setting}: {name!r} is not a function")  # noqa: TRY004 - a setting's error
    return found
