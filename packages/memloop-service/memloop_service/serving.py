"""Starts, serves and stops a process: its sockets, its TLS, one configuration of uvicorn for every port.

``/metrics`` may have a port of its own, so that a network policy can open it to Prometheus alone.

A stopping process drains its connections so that no client's request fails. On SIGTERM ``/readyz`` returns 503, so that
load balancers send nothing new, and every response carries ``Connection: close``; requests that still arrive are
served. That lasts for ``drain_s`` seconds after the last response whose head was sent before the signal: its client may
use the connection once more. Then the process stops listening, closes idle connections, and gives requests in flight
the rest of ``stop_grace_s``.
"""

import asyncio
import gc
import signal
import socket
import ssl
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import uvicorn
from fastapi import FastAPI

from memloop.chores import alongside
from memloop_clients.tls import Certificate, client_context, server_context
from memloop_service.connections import ConnectionLimits, LimitedHttp, Refusals
from memloop_service.incoming import is_loopback
from memloop_service.logs import configure_logging
from memloop_service.private_files import make_files_private
from memloop_service.settings import ServiceSettings


def served_by(settings: ServiceSettings) -> ssl.SSLContext | None:
    """Return the context of the process's port; None without a certificate. Exits when a file cannot be used."""
    own = _certificate(settings.tls_cert, settings.tls_key)
    if own is None:
        return None
    try:
        return server_context(own, client_authorities=settings.tls_client_ca)
    except (OSError, ssl.SSLError) as error:
        raise SystemExit(f"MEMLOOP_TLS_CERT, MEMLOOP_TLS_KEY or MEMLOOP_TLS_CLIENT_CA: {error}") from error


def connects_by(settings: ServiceSettings, *, any_name: bool = False) -> ssl.SSLContext | None:
    """Return the context of connections to other parts; None: by the system's. Exits when a file cannot be used.

    ``any_name``: whatever name is in the certificate, which is for a server of this very machine.
    """
    own = _certificate(settings.connect_cert, settings.connect_key)
    if own is None and settings.connect_ca is None:
        return None
    try:
        return client_context(authorities=settings.connect_ca, own=own, any_name=any_name)
    except (OSError, ssl.SSLError) as error:
        raise SystemExit(f"MEMLOOP_CONNECT_CA, MEMLOOP_CONNECT_CERT or MEMLOOP_CONNECT_KEY: {error}") from error


def _certificate(chain: Path | None, key: Path | None) -> Certificate | None:
    return Certificate(chain, key) if chain is not None else None


KEEP_ALIVE_S = 75
"""How long an idle connection is kept for its client."""


def serving(
    app: FastAPI, settings: ServiceSettings, *, refusals: Refusals, own_port: bool = True, **options: Any
) -> uvicorn.Config:
    """Return the configuration of a port; ``refusals`` counts the connections that it refuses.

    ``own_port`` is False for a second one, of which a few clients know: it never speaks TLS, and has fewer connections.
    """
    tls = served_by(settings) if own_port else None
    limits = ConnectionLimits.of(settings, share=1 if own_port else 8)
    return uvicorn.Config(
        app,
        http=cast(type[LimitedHttp], partial(LimitedHttp, limits, refusals)),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=round(settings.stop_grace_s),
        ssl_context_factory=(lambda config, default: tls) if tls is not None else None,
        **options,
    )


_UNSENT_BYTES: Final = 128 * 1024
"""The most of a response that the kernel holds for a client that does not take it; by default it holds 4 MB."""
_ANY_USER: Final = 0o666
"""As with a port, any user of the machine may connect, if the permissions of the folder let it."""


def main_listener(settings: ServiceSettings) -> socket.socket:
    """Return the socket of the process's clients: its Unix socket, if it has one, else that of its port.

    A Unix socket that an earlier process left behind is replaced. Exits when it cannot bind.
    """
    path = settings.unix_socket
    if path is None:
        return listener(settings, settings.port)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.is_socket() and not _is_served(path):
            path.unlink()
        bound.bind(str(path))
        path.chmod(_ANY_USER)
    except OSError as error:
        bound.close()
        raise SystemExit(f"cannot listen on {path}: {error.strerror or error}") from error
    return bound


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True


def listener(settings: ServiceSettings, port: int) -> socket.socket:
    """Return the bound socket. Clients must read sent data within ``write_timeout_s``.

    The kernel enforces that (on Linux) for every response, without a timer of ours: it closes a connection whose peer
    has read nothing for that long, and the request ends as if the client had disconnected.

    Exits when it cannot bind.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or asyncio leaves Nagle on
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(settings.write_timeout_s * 1000))
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
    try:
        bound.bind((settings.host, port))
    except OSError as error:
        bound.close()
        raise SystemExit(f"cannot listen on {settings.host}:{port}: {error.strerror}") from error
    return bound


_STOP_S = 1


@asynccontextmanager
async def metrics_served(app: FastAPI, settings: ServiceSettings) -> AsyncGenerator[None]:
    """Serve the app's metrics on ``metrics_port``, if set, during the block. Raises SystemExit for a taken port."""
    if settings.metrics_port is None:
        yield
        return
    config = serving(
        app.state.metrics,
        settings,
        refusals=app.state.refusals,
        own_port=False,
        lifespan="off",
        headers=[("cache-control", "no-store"), ("x-content-type-options", "nosniff")],
    )
    config.timeout_graceful_shutdown = _STOP_S
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    server.server_state.default_headers = config.encoded_headers
    bound = listener(settings, settings.metrics_port)
    await server.startup(sockets=[bound])
    try:
        yield
    finally:
        await server.shutdown(sockets=[bound])


_LOOK_S: Final = 0.05


@dataclass(slots=True)
class Drain:
    """Whether the process drains and which clients have not been notified. Times are of ``time.monotonic``."""

    began_at: float | None = None
    """From then on responses carry ``Connection: close``, and the process gets no new requests."""
    untold: int = 0
    """The responses under way that started without it: their clients may reuse the connection."""
    last_untold_at: float = 0.0
    """When the last such response ended."""

    def terminate(self, server: uvicorn.Server) -> None:
        """Start draining, or stop the server if that has begun."""
        if self.began_at is None:
            self.began_at = time.monotonic()
        else:
            server.handle_exit(signal.SIGTERM, None)

    def left_s(self, drain_s: float, grace_s: float) -> float | None:
        """Return the seconds left for requests in flight once the drain is over; None before."""
        if self.began_at is None:
            return None
        now = time.monotonic()
        announced = not self.untold and now - max(self.began_at, self.last_untold_at) >= drain_s
        over = now - self.began_at >= grace_s + drain_s
        return max(1.0, self.began_at + drain_s + grace_s - now) if announced or over else None


async def drained(server: uvicorn.Server, drain: Drain, *, drain_s: float, grace_s: float) -> None:
    """Drain a server once it has started: on its first SIGTERM. A second one, or SIGINT, stops it as in uvicorn."""
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(_LOOK_S)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, drain.terminate, server)
    while (left_s := drain.left_s(drain_s, grace_s)) is None:  # noqa: ASYNC110 - and a drain ends by the clock
        await asyncio.sleep(_LOOK_S)
    server.config.timeout_graceful_shutdown = round(left_s)
    server.handle_exit(signal.SIGTERM, None)


_NEW_OBJECTS = 20_000
_NOT_STARTED = 3
_SWITCH_S = 0.001


def refuse_open_listen(host: str, *, has_keys: bool) -> None:
    """Exit unless keys are configured or the host is loopback, so that memories are never served unguarded."""
    if not has_keys and not is_loopback(host):
        raise SystemExit(f"no keys are configured: refusing to listen on {host!r}; set keys, or MEMLOOP_HOST=127.0.0.1")


def run(app: FastAPI, settings: ServiceSettings, *, drain_s: float = 0.0) -> None:
    """Serve until a signal, then drain; ``drain_s`` 0 stops listening at once.

    A thread that computes gives the interpreter back to the event loop after a millisecond. With Python's default of
    five, a request that waits for the network a dozen times waits 60 ms more beside such a thread.
    """
    make_files_private()
    configure_logging(app.title, settings.log_level)
    # The objects loaded so far live as long as the process: no collection need scan them. Requests create few cycles:
    # with Python's default of 700 new objects the collector would run at every second request
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 10, 10)
    sys.setswitchinterval(_SWITCH_S)
    config = serving(app, settings, refusals=app.state.refusals)
    server = uvicorn.Server(config)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(server, app, settings, drain_s))
    if not server.started:
        raise SystemExit(_NOT_STARTED)


async def _serve(server: uvicorn.Server, app: FastAPI, settings: ServiceSettings, drain_s: float) -> None:
    """Serve the app; its metrics from the start of the process to the end of its drain."""
    own = main_listener(settings)
    draining = [drained(server, app.state.drain, drain_s=drain_s, grace_s=settings.stop_grace_s)] if drain_s else []
    async with metrics_served(app, settings), alongside(*draining):
        await server.serve(sockets=[own])
