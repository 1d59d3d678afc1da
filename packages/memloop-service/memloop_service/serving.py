"""How every port of every process is served: one configuration of uvicorn."""

from functools import partial
from typing import Any, cast

import uvicorn
from fastapi import FastAPI

from memloop_service.connections import ConnectionLimits, LimitedHttp, Refusals
from memloop_service.settings import ServiceSettings
from memloop_service.tls import served_by

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
