"""The API process: reads the settings, builds the application and serves it. Run: ``python -m gateway.main``."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import cast

from fastapi import FastAPI, Request, Response
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from gateway import mem0
from gateway.access import UserHeaders, audit_denials, load_static_keys, open_access
from gateway.access import routes as admin
from gateway.changes import routes as changes
from gateway.changes.following import Bell
from gateway.changes.hooks import MemoryHooks
from gateway.changes.routes import Changes
from gateway.chat import answering as chat
from gateway.chat import profile as profiles
from gateway.chat.chat import Chat
from gateway.console import routes as console
from gateway.console.routes import open_console
from gateway.document import describe
from gateway.engine import ModelsConfig, Rollouts, open_backend, read_models, refusing_wrong_models
from gateway.engine import routes as models
from gateway.files import records as file_records
from gateway.files import routes as uploads
from gateway.files.files import open_files
from gateway.jobs import letters as jobs
from gateway.jobs.letters import Jobs
from gateway.long_read import records as long_read_records
from gateway.long_read import routes as long_read
from gateway.long_read.admission import forget_read
from gateway.long_read.reading import Reading, open_reading
from gateway.mcp import surface as mcp
from gateway.mcp.host import McpHost
from gateway.mcp.surface import Mcp
from gateway.memory import routes as memories
from gateway.memory.memory import OPTIONAL, Delete, Memory, Parts, Readiness, open_memory
from gateway.messages import routes as messages
from gateway.messages.routes import ANTHROPIC
from gateway.metrics import Metrics
from gateway.policy import routes as policies
from gateway.queue import state_of
from gateway.responses import records as response_records
from gateway.responses import routes as responses
from gateway.responses.background.jobs import Background, open_background
from gateway.responses.conversations import records as conversation_records
from gateway.responses.conversations import routes as conversations
from gateway.settings import GatewaySettings, names_in
from gateway.traces import keeper as trace_keeper
from gateway.traces import routes as traces
from gateway.usage import routes as usage
from gateway.usage.routes import Ledger
from gateway.vector_stores import open_vector_stores
from gateway.vector_stores import records as vector_store_records
from gateway.vector_stores import routes as vector_stores
from gateway.vector_stores.slice import VectorStores
from gateway.webhooks import webhooks as webhook_secrets
from gateway.webhooks.webhooks import open_webhooks
from memloop_service import BelowPath, create_app, new_registry, refuse_open_listen, run, start_tracing
from memloop_service.http import ClientGone
from memloop_state.steps import Values

CLIENT_CLOSED_REQUEST = 499
LARGER = ("/v1/long-read", "/v1/long-read/estimate", "/v1/memory/batch", "/v1/memory/import", "/mcp")
"""The routes that take whole documents, or many memories at once."""
FORM_BYTES = 1 << 16
"""The size limit of an upload's form without its file."""
NOT_JSON = ("/v1/files", "/v1/memory/import")
"""Paths whose body is not JSON: a form, and JSON lines."""

STYLES = {messages.PATH: ANTHROPIC} | dict.fromkeys(mem0.PATHS, mem0.MEM0)
"""The paths of APIs whose errors and headers are not OpenAI's, with all below them."""

ROUTERS = (
    chat.router,
    profiles.router,
    messages.router,
    responses.router,
    models.router,
    long_read.router,
    uploads.router,
    policies.router,
    policies.checks,
    changes.router,
    memories.router,
    mem0.router,
    mcp.router,
    conversations.router,
    vector_stores.router,
    admin.router,
    webhook_secrets.router,
    traces.router,
    jobs.router,
    usage.router,
    console.router,
)


def build_app(settings: GatewaySettings) -> FastAPI:
    """Build the application; it opens its slices on start and closes them on stop. Raises as ``read_models`` does."""
    config = read_models(settings)
    registry = new_registry()
    metrics = Metrics(registry)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with opened(app, config, settings, metrics):
            yield

    ready = Readiness(lambda: cast(Parts, app.state))
    app = create_app(
        "gateway",
        settings=settings,
        routers=ROUTERS,
        readiness=ready.checks,
        optional=OPTIONAL,
        warnings=ready.warnings,
        details=ready.details,
        registry=registry,
        max_body_bytes=min(settings.max_json_bytes, settings.max_body_bytes),
        larger_bodies=dict.fromkeys(LARGER, settings.max_body_bytes)
        | {"/v1/files": settings.max_file_bytes + FORM_BYTES},
        styles=STYLES,
        lifespan=lifespan,
        has_keys=bool(load_static_keys(settings)),
        other_bodies=NOT_JSON,
        other_origins=settings.cors_origins.split(","),
        request_seconds=metrics.request_seconds,
    )
    app.add_exception_handler(ClientGone, client_gone)
    audit_denials(app)
    app.openapi = describe(app)
    app.state.console = open_console(settings.console)
    if settings.cors_origins:
        app.user_middleware.insert(
            0,
            Middleware(
                CORSMiddleware,
                allow_origins=settings.cors_origins.split(","),
                allow_methods=["*"],
                allow_headers=["*"],
                expose_headers=["*"],
            ),
        )
    if names := names_in(settings.user_headers):
        keys = frozenset(names_in(settings.user_header_keys))
        app.user_middleware.insert(0, Middleware(UserHeaders, names=names, keys=keys))
    if settings.root_path:
        app.user_middleware.insert(0, Middleware(BelowPath, root_path=settings.root_path))
    return app


@asynccontextmanager
async def opened(
    app: FastAPI, config: ModelsConfig, settings: GatewaySettings, metrics: Metrics
) -> AsyncGenerator[None]:
    """Open every slice and put it in the application's state, where its dependency finds it.

    Raises ProfileError as ``open_backend`` does, KeyFileError on bad keys.
    """
    async with (
        state_of(settings) as redis,
        open_backend(config, settings, metrics) as backend,
        open_memory(settings, redis, metrics=metrics) as memory,
    ):
        access = open_access(settings, redis, counting=lambda: backend.models.counting, metrics=metrics)
        rules = memory.queue.lanes.rules
        files, webhooks = open_files(settings, redis, rules), open_webhooks(settings, redis, rules)
        searched = open_vector_stores(settings, redis, rules, files=files, store=memory.store, keeper=memory.keeper)
        background = open_background(settings, redis, rules, metrics)
        reading = open_reading(settings, redis, backend=backend, memory=memory, files=files, webhooks=webhooks)
        memory = replace(memory, deletes=deletes_of(memory, reading, background, searched))
        bell = Bell(memory.store)
        async with McpHost(max_body_bytes=settings.max_body_bytes) as host, aclosing(bell):
            app.state.state, app.state.access, app.state.backend = redis, access, backend
            app.state.traces = memory.traces
            app.state.files, app.state.webhooks = files, webhooks
            app.state.memory, app.state.reading, app.state.keeper = memory, reading, memory.keeper
            app.state.chat = Chat(settings, backend, memory, access.admission)
            app.state.background, app.state.vector_stores = background, searched
            app.state.conversations = background.conversations
            app.state.changes = Changes(
                memory.store, bell, reading.followers, MemoryHooks(redis), webhooks, settings.heartbeat_s
            )
            queues = (memory.queue.lanes, reading.queue, files.queue, webhooks.queue, background.queue, searched.queue)
            app.state.jobs = Jobs(memory.queue.lanes, queues)
            app.state.mcp = Mcp(host.answer, memory, reading, access.admission, Values(redis, "mcp", keep_s=24 * 3600))
            app.state.rollouts = rollouts = Rollouts(redis, backend.models, metrics)
            app.state.usage = ledger = Ledger(redis, metrics, prices=settings.prices)
            async with access.running(), ledger.keeping(), rollouts.following():
                yield


def deletes_of(
    memory: Memory, reading: Reading, background: Background, searched: VectorStores
) -> Mapping[str, Delete]:
    """Return how an erasure deletes each kind of record that a user may own."""
    return {
        long_read_records.KIND: partial(forget_read, reading=reading),
        trace_keeper.KIND: memory.traces.records.forget_one,
        response_records.KIND: background.forget,
        conversation_records.KIND: background.conversations.delete,
        vector_store_records.KIND: searched.delete,
    } | ({} if reading.files.records is None else {file_records.KIND: reading.files.records.delete})


async def client_gone(request: Request, failure: Exception) -> Response:
    """Answer a request whose client has disconnected: the status is for the metrics only."""
    del request, failure
    return Response(status_code=CLIENT_CLOSED_REQUEST)


def main() -> None:
    """Serve until a signal. Exits with a message on wrong settings or an unprotected public address."""
    settings = GatewaySettings.read()
    refuse_open_listen(settings.host, has_keys=bool(load_static_keys(settings)))
    start_tracing("gateway")
    with refusing_wrong_models():
        app = build_app(settings)
    run(app, settings, drain_s=settings.drain_s)


if __name__ == "__main__":
    main()
