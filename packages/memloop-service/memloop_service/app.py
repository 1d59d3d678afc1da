"""Builds the FastAPI app of a process."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TypeAlias

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry, Histogram
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from memloop.chores import alongside
from memloop.wire.errors import MemloopError
from memloop_service import health, metrics
from memloop_service.connections import Refusals
from memloop_service.edge import BodyLimits, Edge
from memloop_service.errors import ApiStyle, handle
from memloop_service.health import Check, Detail, Health, Warn
from memloop_service.incoming import LocalOnly
from memloop_service.metrics import VERSION, introduce, metrics_app, new_registry, watch_dependencies, watch_loop
from memloop_service.serving import Drain
from memloop_service.settings import ServiceSettings
from memloop_service.tracing import flush_spans, is_tracing, traced

Lifespan: TypeAlias = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def create_app(
    title: str,
    *,
    settings: ServiceSettings,
    routers: Sequence[APIRouter] = (),
    readiness: Mapping[str, Check] | None = None,
    optional: Collection[str] = (),
    warnings: Mapping[str, Warn] | None = None,
    details: Mapping[str, Detail] | None = None,
    registry: CollectorRegistry | None = None,
    max_body_bytes: int | None = None,
    larger_bodies: Mapping[str, int] | None = None,
    styles: Mapping[str, ApiStyle] | None = None,
    lifespan: Lifespan | None = None,
    adopts_ids: bool = False,
    has_keys: bool = False,
    other_bodies: Collection[str] = (),
    other_origins: Collection[str] = (),
    request_seconds: Histogram | None = None,
) -> FastAPI:
    """An app with the process's routers, and all that every process has.

    The app takes the routers' routes as they are: FastAPI would build each again to include it. So a router declares
    ``responses=ERRORS`` itself.

    ``readiness`` names the dependencies that ``/readyz`` checks, ``optional`` those of them without which the process
    serves a part of its routes, ``warnings`` the sentences that it shows beside them, ``details`` what
    ``/readyz?verbose`` adds. ``registry`` holds the process's metrics; the default is a new one. ``max_body_bytes``
    limits a body and defaults to the settings' limit; ``larger_bodies`` maps paths that need more to their limits in
    bytes, ``styles`` paths to the style of their API. ``lifespan`` opens and closes the process's resources.
    ``adopts_ids`` is for a process that only our own processes call. Without ``has_keys`` only this machine's own
    programs and pages of ``other_origins`` are answered, and only the paths in ``other_bodies`` take a body that is
    not JSON. ``request_seconds`` gets the time of each request by route and status. Call ``start_tracing`` first if the
    process traces.
    """
    registry, checks = registry or new_registry(), readiness or {}
    introduce(title.removeprefix("memloop-"), registry)
    drain = Drain()
    app = FastAPI(
        title=title,
        version=VERSION,
        openapi_url=None,
        docs_url=None,  # FastAPI's pages load their scripts from a CDN
        redoc_url=None,
        lifespan=_watched(lifespan, registry, checks),
        redirect_slashes=False,
    )
    app.state.drain = drain
    app.state.refusals = Refusals(registry)
    for failure in (MemloopError, RequestValidationError, HTTPException):
        app.add_exception_handler(failure, handle)
    app.add_middleware(
        Edge,
        drain=drain,
        limits=BodyLimits(
            max_body_bytes or settings.max_body_bytes, settings.body_timeout_s, settings.body_bytes_per_s
        ),
        larger_bodies=larger_bodies or {},
        styles=styles,
        adopts_ids=adopts_ids,
        seconds=request_seconds,
    )
    if is_tracing():
        app.add_middleware(traced)
    if not has_keys:
        app.user_middleware.append(
            Middleware(LocalOnly, listens_at=settings.host, other_bodies=other_bodies, other_origins=other_origins)
        )
    app.state.health = Health(drain, checks, optional, warnings or {}, details or {})
    for router in (*routers, health.router):  # searched in this order
        app.router.routes.extend(router.routes)
    if settings.metrics_port is None:
        app.router.routes.extend(metrics.router.routes)
        app.state.registry = registry
    else:
        app.state.metrics = metrics_app(registry)
        app.state.metrics.add_middleware(LocalOnly, listens_at=settings.host)
        if settings.tls_cert is not None:  # a probe of Kubernetes has no certificate to show
            app.state.metrics.router.routes.extend(health.router.routes)
            app.state.metrics.state.health = app.state.health
    for route in app.router.routes:  # methods of generated clients are named after the function: they outlive a path
        if isinstance(route, APIRoute) and route.operation_id is None:
            route.operation_id = route.name
    app.openapi_url = "/openapi.json"
    app.setup()  # the document: after the frequent routes
    return app


def _watched(lifespan: Lifespan | None, registry: CollectorRegistry, checks: Mapping[str, Check]) -> Lifespan:
    @asynccontextmanager
    async def run(app: FastAPI) -> AsyncGenerator[None]:
        try:
            async with (
                alongside(watch_loop(registry)),
                lifespan(app) if lifespan is not None else nullcontext(),
                alongside(watch_dependencies(registry, checks)),
            ):
                yield
        finally:
            if is_tracing():
                await asyncio.to_thread(flush_spans)

    return run


class BelowPath:
    """Removes ``root_path``, below which a proxy serves the app, from a request's path; links find it in the scope.

    The app gets the paths of its own routes either way. Requests without the path come from probes, or from a proxy
    that has removed it.
    """

    def __init__(self, app: ASGIApp, *, root_path: str) -> None:
        self._app = app
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path, raw = scope["path"], scope.get("raw_path") or b""
            if path == self._root_path or path.startswith(f"{self._root_path}/"):
                path, raw = path[len(self._root_path) :] or "/", raw[len(self._root_path) :] or b"/"
            scope = {**scope, "root_path": self._root_path, "path": path, "raw_path": raw}
        await self._app(scope, receive, send)
