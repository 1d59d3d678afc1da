"""Starts a process."""

import gc
import ipaddress

import uvicorn
from fastapi import FastAPI

from memloop.service.logs import configure_logging
from memloop.service.settings import ServiceSettings

_KEEP_ALIVE_S = 75
_GRACE_S = 30
_NEW_OBJECTS = 20_000


def refuse_open_listen(host: str, *, has_keys: bool) -> None:
    """Exit unless there are keys, or the host is this machine alone. Nobody serves memories to a network unguarded."""
    if not has_keys and not _is_loopback(host):
        raise SystemExit(f"no keys are configured: refusing to listen on {host!r}; set keys, or MEMLOOP_HOST=127.0.0.1")


def run(app: FastAPI, settings: ServiceSettings) -> None:
    """Serve until a signal; requests in flight get half a minute."""
    configure_logging(app.title, settings.log_level)
    _spare_the_collector()
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )


def _spare_the_collector() -> None:
    """What is loaded by now lives as long as the process: no collection need walk through it while clients wait.

    Requests leave few cycles behind: to look for them after 700 new objects, Python's default, is to look at every
    second request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 10, 10)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
