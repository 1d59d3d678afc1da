"""What every FastAPI process of ours shares: errors, request ids, limits, health, metrics, logs, settings, start-up."""

from memloop.service.app import create_app
from memloop.service.chores import ended
from memloop.service.edge import BODY_SEND
from memloop.service.errors import error_response
from memloop.service.health import Check
from memloop.service.logs import configure_logging
from memloop.service.metrics import new_registry, watch_disk
from memloop.service.request_times import RequestTimes
from memloop.service.run import refuse_open_listen, run
from memloop.service.settings import ServiceSettings
from memloop.service.tracing import start_tracing

__all__ = [
    "BODY_SEND",
    "Check",
    "RequestTimes",
    "ServiceSettings",
    "configure_logging",
    "create_app",
    "ended",
    "error_response",
    "new_registry",
    "refuse_open_listen",
    "run",
    "start_tracing",
    "watch_disk",
]
