"""What a request or a job works with: settings and adapters, built once per process and passed down."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from pydantic import SecretStr
from redis.asyncio import Redis

from gateway.access.audit import Auditor
from gateway.access.audit_log import AuditLog
from gateway.access.auth import KeyRing
from gateway.access.key_cache import KeyBook
from gateway.access.key_records import KeyRecords
from gateway.access.rates import RateLimits, Rates
from gateway.access.static_keys import load_static_keys
from gateway.engine.breaker import Breaker, EngineGuard
from gateway.engine.engines import Engines
from gateway.engine.served import loop_model
from gateway.files.blobs import Blobs
from gateway.files.records import FileRecords
from gateway.files.storage import Storage
from gateway.http.capacity import Capacity, Lanes
from gateway.http.idempotency import Idempotency
from gateway.memory.jobs import Jobs
from gateway.metrics import Metrics
from gateway.settings import GatewaySettings
from gateway.traces.keeper import TraceKeeper
from gateway.traces.records import TraceRecords
from gateway.traces.redaction import redactor_at
from gateway.webhooks.addresses import AddressRules, networks_of
from gateway.webhooks.rules import WebhookRules
from gateway.webhooks.signing import WebhookSecrets
from memloop.clients import Dialect, EngineClient, InferenceClient, StoreClient, Timeouts
from memloop.ports import Splitter
from memloop.profiles import Profile
from memloop.wire.errors import NotSupported
from memloop_service.redis_link import connect


@dataclass(frozen=True, slots=True)
class Services:
    """The adapters of one process. Nothing here holds state of a user."""

    settings: GatewaySettings
    keys: KeyRing
    key_records: KeyRecords
    auditor: Auditor
    metrics: Metrics
    redis: Redis
    store: StoreClient
    engine: Engines
    """Its ``complete`` asks ``model``, which the loops use; a chat names its own in its body."""
    inference: InferenceClient | None
    profile: Profile
    splitter: Splitter
    model: str
    jobs: Jobs
    lanes: Lanes
    idempotency: Idempotency
    rates: Rates
    files: FileRecords | None
    """None without a storage."""
    webhooks: WebhookRules
    traces: TraceKeeper

    def stored_files(self) -> FileRecords:
        """The files. Raises NotSupported when no storage is configured."""
        if self.files is None:
            raise NotSupported("Files are not served here: no storage is configured (MEMLOOP_STORAGE_URL).")
        return self.files


@asynccontextmanager
async def open_services(settings: GatewaySettings, metrics: Metrics) -> AsyncGenerator[Services]:
    """The adapters of the API or the worker, closed on leaving.

    Waits for inference and the engine as ``loop_model`` does, and raises what it raises; KeyFileError on bad keys.
    """
    static_keys = load_static_keys(settings)
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(redis_of(settings))
        key_records = KeyRecords(redis)
        store = await stack.enter_async_context(StoreClient(settings.store_url, key=_secret(settings.store_key)))
        inference = await stack.enter_async_context(_inference(settings)) if settings.inference_url else None
        clients = [await stack.enter_async_context(_engine(settings, url)) for url in settings.engines]
        guards = [EngineGuard(client, _breaker(settings, metrics, place)) for place, client in enumerate(clients)]
        engines = Engines(guards, on_fallback=metrics.upstream_fallback.inc)
        served = await loop_model(settings, engines, inference)
        jobs = Jobs(
            redis,
            keep_events_ms=int(settings.memory_event_keep_s * 1000),
            keep_reads_ms=int(settings.long_read_keep_s * 1000),
        )
        yield Services(
            settings=settings,
            keys=KeyRing(static_keys, _key_book(settings, key_records)),
            key_records=key_records,
            auditor=Auditor(AuditLog(redis)),
            metrics=metrics,
            redis=redis,
            store=store,
            engine=engines.of_model(served.id),
            inference=inference,
            profile=served.profile,
            splitter=served.splitter,
            model=served.id,
            jobs=jobs,
            lanes=_lanes(settings, metrics),
            idempotency=Idempotency(redis, max_bytes=settings.idempotency_max_bytes),
            rates=Rates(redis, RateLimits(settings.requests_per_minute, settings.tokens_per_minute)),
            files=_files(settings, redis, jobs),
            webhooks=_webhooks(settings),
            traces=_traces(settings, redis, metrics),
        )


def _capacity(settings: GatewaySettings) -> Capacity:
    return Capacity(
        requests=settings.max_active_requests,
        batch=settings.max_batch_requests,
        body_bytes=settings.max_active_bytes,
    )


def _files(settings: GatewaySettings, redis: Redis, jobs: Jobs) -> FileRecords | None:
    if settings.storage_url is None:
        return None
    blobs = Blobs(redis, Storage.at(settings.storage_url), tenant_bytes=settings.tenant_storage_bytes)
    return FileRecords(redis, jobs.files, blobs, tenant_files=settings.tenant_files)


def _traces(settings: GatewaySettings, redis: Redis, metrics: Metrics) -> TraceKeeper:
    return TraceKeeper(
        records=TraceRecords(redis, keep_s=settings.trace_keep_s, most=settings.tenant_traces),
        new_redactor=redactor_at(settings.trace_redactor),
        max_chars=settings.max_trace_chars,
        count=lambda outcome: metrics.traces.labels(outcome).inc(),
    )


def _webhooks(settings: GatewaySettings) -> WebhookRules:
    return WebhookRules(
        secrets=WebhookSecrets.parse(_secret(settings.webhook_secret) or ""),
        addresses=AddressRules(networks_of(settings.webhook_allow_networks)),
        allow_http=settings.webhook_allow_http,
    )


def redis_of(settings: GatewaySettings) -> Redis:
    """The client of the Redis, or Redis Cluster, that the settings name; to be entered and left."""
    timeout_s = settings.redis_timeout_s
    return connect(settings.redis_url.get_secret_value(), connect_timeout_s=timeout_s, read_timeout_s=timeout_s)


def _key_book(settings: GatewaySettings, records: KeyRecords) -> KeyBook:
    return KeyBook(records, wait_s=min(1.0, settings.redis_timeout_s / 2), stale_s=settings.keys_stale_s)


def _engine(settings: GatewaySettings, url: str) -> EngineClient:
    return EngineClient(
        url,
        model="",
        api_key=_secret(settings.engine_api_key),
        timeouts=Timeouts(
            connect_s=settings.engine_connect_timeout_s,
            read_s=settings.engine_read_timeout_s,
            total_s=settings.engine_total_timeout_s,
        ),
        dialect=Dialect(template_kwargs=settings.engine_template_options),
    )


def _breaker(settings: GatewaySettings, metrics: Metrics, place: int) -> Breaker:
    breaker = Breaker(failures=settings.engine_breaker_failures, open_s=settings.engine_breaker_open_s)
    metrics.watch_circuit(place, lambda: breaker.is_open)
    return breaker


def _lanes(settings: GatewaySettings, metrics: Metrics) -> Lanes:
    lanes = Lanes(_capacity(settings))
    metrics.watch_lanes(lanes)
    return lanes


def _inference(settings: GatewaySettings) -> InferenceClient:
    return InferenceClient(settings.inference_url or "")


def _secret(value: SecretStr | None) -> str | None:
    return value.get_secret_value() if value is not None else None
