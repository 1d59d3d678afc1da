"""Starts and stops a process."""

import asyncio
import gc
import sys

import uvicorn
from fastapi import FastAPI

from memloop_service.chores import alongside, drained
from memloop_service.headers import is_loopback
from memloop_service.listening import main_listener
from memloop_service.logs import configure_logging
from memloop_service.metrics_port import metrics_served
from memloop_service.private_files import make_files_private
from memloop_service.serving import serving
from memloop_service.settings import ServiceSettings

_NEW_OBJECTS = 20_000
_NOT_STARTED = 3
_SWITCH_S = 0.001


def refuse_open_listen(host: str, *, has_keys: bool) -> None:
    """Exit unless keys are configured or the host is loopback, so that memories are never served unguarded."""
    if not has_keys and not is_loopback(host):
        raise SystemExit(f"no keys are configured: refusing to listen on {host!r}; set keys, or MEMLOOP_HOST=127.0.0.1")


def run(app: FastAPI, settings: ServiceSettings, *, drain_s: float = 0.0) -> None:
    """Serve until a signal, then drain (see ``memloop_service.chores``); ``drain_s`` 0 stops listening at once.

    A thread that computes gives the interpreter back to the event loop after a millisecond. With Python's default of
    five, a request that waits for the network a dozen times waits 60 ms more beside such a thread.
    """
    make_files_private()
    configure_logging(app.title, settings.log_level)
    _spare_the_collector()
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


def _spare_the_collector() -> None:
    """Freeze the objects loaded so far: they live as long as the process, so no collection need scan them.

    Requests create few cycles: with Python's default of 700 new objects the collector would run at every second
    request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 10, 10)
