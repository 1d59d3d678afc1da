"""What the gateway and its worker read from the environment, each name with the prefix ``MEMLOOP_``."""

import base64
import binascii
import importlib
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Final, Self, TypeAlias

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import SettingsConfigDict

from memloop.clients import DialectName
from memloop_service import ServiceSettings

MIB = 1024 * 1024
DAY_S = 24 * 3600
WEBHOOK_KEY_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = range(24, 65)
Network: TypeAlias = IPv4Network | IPv6Network


class GatewaySettings(ServiceSettings):
    """Settings of the API. Times are in seconds. An empty variable counts as not set."""

    model_config = SettingsConfigDict(env_ignore_empty=True)

    port: int = 7800
    max_body_bytes: int = Field(default=64 * MIB, gt=0)

    redis_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    redis_timeout_s: float = Field(default=5.0, gt=0)

    store_url: str = "http://127.0.0.1:7801"
    store_key: SecretStr | None = None
    recall_timeout_s: float = Field(default=2.0, gt=0)
    enqueue_timeout_s: float = Field(default=1.0, gt=0)

    engine_url: str = "http://127.0.0.1:7803/v1"
    engine_fallback_urls: str = ""
    """More engines, with commas between, asked in this order while those before them are gone. Key and models are the
    same on all."""
    engine_api_key: SecretStr | None = None
    engine_connect_timeout_s: float = Field(default=5.0, gt=0)
    engine_read_timeout_s: float = Field(default=600.0, gt=0)
    engine_total_timeout_s: float = Field(default=3600.0, gt=0)
    engine_breaker_failures: int = Field(default=5, ge=1)
    engine_breaker_open_s: float = Field(default=5.0, gt=0)
    """After so many connection failures in a row the engine is left alone for so long."""
    engine_dialect: DialectName = "auto"
    """What the engines accept of a loop's request. ``auto`` recognises them and learns from what they refuse."""

    inference_url: str | None = None
    profile: str | None = None
    tokenizer: Path | None = None
    model: str | None = None
    startup_wait_s: float = Field(default=120.0, ge=0)
    """How long to wait for inference to hand over the profile and the tokenizer."""

    api_keys: SecretStr = SecretStr("")
    api_keys_file: Path | None = None
    keys_stale_s: float = Field(default=300.0, ge=0)
    """How long the keys in Redis are still taken when Redis cannot be reached."""

    max_active_requests: int = Field(default=512, ge=1)
    max_batch_requests: int = Field(default=64, ge=0)
    """How many of them may be long reads."""
    max_active_bytes: int = Field(default=1024 * MIB, gt=0)
    """What the bodies of all requests under way may take together; not less than ``max_body_bytes``."""
    requests_per_minute: int = Field(default=0, ge=0)
    tokens_per_minute: int = Field(default=0, ge=0)
    """Of one key; 0 is no limit."""
    idempotency_max_bytes: int = Field(default=MIB, ge=0)
    """The longest answer that is kept for an ``Idempotency-Key``."""
    long_context_max_calls: int = Field(default=200, ge=1)
    long_context_deadline_s: float = Field(default=300.0, gt=0)
    """What the parts of one chat that do not fit the window may take to read."""
    heartbeat_s: float = Field(default=15.0, gt=0)

    max_document_chars: int = Field(default=16_000_000, ge=1)
    """The longest document in a body; a longer one comes as a file."""
    storage_url: str | None = None
    """``file:///folder`` or ``s3://bucket/prefix`` for files and documents, the same for the API and its workers."""
    max_file_bytes: int = Field(default=512 * MIB, gt=0)
    tenant_storage_bytes: int = Field(default=20 * 1024 * MIB, gt=0)
    tenant_files: int = Field(default=10_000, gt=0)
    file_wait_s: float = Field(default=60.0, ge=0)
    """How long a read waits for the text of a file that was uploaded just now."""
    long_read_keep_s: float = Field(default=7 * DAY_S, ge=60)
    """How long a finished read, its memory, answer and events can be asked for."""
    memory_event_keep_s: float = Field(default=7 * DAY_S, ge=60)
    """How long the event of a finished memory write can be asked for. The memories stay."""
    max_followers: int = Field(default=1024, ge=1)
    tenant_followers: int = Field(default=512, ge=1)
    """Streams of background reads' events that the process sends at a time, of all tenants and of one."""
    sync_wait_s: float = Field(default=60.0, gt=0)
    """How long a memory add with ``sync`` waits for its event before it answers 202."""

    trace_keep_s: float = Field(default=30 * DAY_S, ge=60)
    tenant_traces: int = Field(default=10_000, ge=1)
    """How long, and how many, traces for training are kept of a tenant that asked for it."""
    max_trace_chars: int = Field(default=MIB, ge=1)
    """A longer run is not kept."""
    trace_redactor: str = ""
    """``package.module:function`` that makes a function from text to redacted text; empty is ours."""

    webhook_secret: SecretStr | None = None
    """``whsec_`` and the base64 of 24 to 64 random bytes. While it is changed: the new one, a comma, the old one."""
    webhook_allow_http: bool = False
    webhook_allow_networks: str = ""
    """Networks that webhooks may reach though they are not public, with commas between: ``10.1.0.0/16,127.0.0.1``."""

    @property
    def engines(self) -> tuple[str, ...]:
        """The base URLs of all engines, the first one first."""
        return (self.engine_url, *(url for url in map(str.strip, self.engine_fallback_urls.split(",")) if url))

    @model_validator(mode="after")
    def _key_sources(self) -> Self:
        if self.api_keys.get_secret_value() and self.api_keys_file is not None:
            raise ValueError("give MEMLOOP_API_KEYS or MEMLOOP_API_KEYS_FILE, not both")
        return self

    @model_validator(mode="after")
    def _webhooks(self) -> Self:
        networks_of(self.webhook_allow_networks)
        webhook_keys_of(secret_of(self.webhook_secret) or "")
        return self

    @model_validator(mode="after")
    def _traces(self) -> Self:
        if self.trace_redactor:
            function_at(self.trace_redactor, setting="MEMLOOP_TRACE_REDACTOR")
        return self

    @model_validator(mode="after")
    def _room_for_a_body(self) -> Self:
        if self.max_active_bytes < self.max_body_bytes:
            raise ValueError("MEMLOOP_MAX_ACTIVE_BYTES must not be less than MEMLOOP_MAX_BODY_BYTES")
        return self


class WorkerSettings(GatewaySettings):
    """Settings of the worker: the API's, and how it takes jobs. Times are in seconds."""

    port: int = 7804
    worker_concurrency: int = Field(default=8, ge=1)
    job_attempts: int = Field(default=5, ge=1)
    job_idle_s: float = Field(default=30.0, gt=0)
    """A job whose worker gave no sign for this long goes to another worker."""
    lane_ttl_s: float = Field(default=30.0, gt=0)
    """How long a namespace's write lock outlives the worker that held it."""
    job_retry_s: float = Field(default=1.0, gt=0)
    """The pause before the second attempt; it doubles from there, up to a minute."""
    job_poll_s: float = Field(default=1.0, gt=0, le=4.0)
    """How long one look for new jobs waits; below ``redis_timeout_s``."""
    stop_wait_s: float = Field(default=10.0, ge=0)
    """How long running jobs may go on when the worker is told to stop."""
    buffer_flush_turns: int = Field(default=20, ge=1, le=100)
    """A buffer of so many turns is settled: added or ignored."""
    buffer_flush_tokens: int | None = Field(default=None, ge=1)
    """Likewise of so many tokens; unset, and at most, what the next decision has room for."""
    buffer_flush_age_s: float = Field(default=3600.0, gt=0)
    """A buffer that nobody added to for this long is settled."""
    read_concurrency: int = Field(default=4, ge=1)
    extract_concurrency: int = Field(default=2, ge=1)
    extract_memory_bytes: int = Field(default=1024 * MIB, gt=0)
    """Address space of the process that extracts one file's text."""
    extract_cpu_s: int = Field(default=120, ge=1)
    extract_wall_s: float = Field(default=300.0, gt=0)
    max_text_bytes: int = Field(default=1024 * MIB, gt=0)
    """The longest text of a file."""
    webhook_concurrency: int = Field(default=16, ge=1)
    webhook_attempts: int = Field(default=12, ge=1)
    webhook_retry_s: float = Field(default=5.0, gt=0)
    """The pause before the second attempt; it doubles from there, up to an hour."""
    webhook_timeout_s: float = Field(default=15.0, gt=0)
    """Of one attempt."""
    sweep_every_s: float = Field(default=60.0, gt=0)


def secret_of(value: SecretStr | None) -> str | None:
    """The secret in the clear, or None when it is not set."""
    return value.get_secret_value() if value is not None else None


def networks_of(text: str) -> tuple[Network, ...]:
    """Networks or addresses with commas between. Raises ValueError."""
    return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())


def webhook_keys_of(text: str) -> tuple[bytes, ...]:
    """Secrets of webhooks, ``whsec_`` and base64, with commas between. Raises ValueError."""
    return tuple(_webhook_key(part.strip()) for part in text.split(",") if part.strip())


def function_at(name: str, *, setting: str) -> Callable[..., object]:
    """The function that a setting names as ``package.module:function``. Raises ValueError."""
    module, _, attribute = name.partition(":")
    try:
        found: object = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{setting}: there is no {name!r} ({error})") from error
    if not callable(found):
        raise ValueError(f"{setting}: {name!r} is no function")  # noqa: TRY004 - a setting's error
    return found


def _webhook_key(part: str) -> bytes:
    try:
        key = base64.b64decode(part.removeprefix(WEBHOOK_KEY_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not part.startswith(WEBHOOK_KEY_PREFIX) or len(key) not in _SECRET_BYTES:
        least, most = _SECRET_BYTES[0], _SECRET_BYTES[-1]
        raise ValueError(f"a webhook secret is {WEBHOOK_KEY_PREFIX} and the base64 of {least} to {most} bytes")
    return key
