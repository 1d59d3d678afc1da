"""Code that every FastAPI process shares: errors, request IDs, limits, health, metrics, logs, settings, start-up."""

from memloop_service.app import BelowPath, create_app
from memloop_service.edge import INCOMING, RESPONSE_HEADERS, TRAILING_SLASH, IncomingBody
from memloop_service.errors import ERRORS, error_response
from memloop_service.health import Check, Detail, StillStarting, Warn
from memloop_service.incoming import of_app
from memloop_service.logs import configure_logging
from memloop_service.metrics import new_registry, watch_disk
from memloop_service.serving import connects_by, metrics_served, refuse_open_listen, run, serving
from memloop_service.settings import ServiceSettings
from memloop_service.tracing import start_tracing

__all__ = [
    "ERRORS",
    "INCOMING",
    "RESPONSE_HEADERS",
    "TRAILING_SLASH",
    "BelowPath",
    "Check",
    "Detail",
    "IncomingBody",
    "ServiceSettings",
    "StillStarting",
    "Warn",
    "configure_logging",
    "connects_by",
    "create_app",
    "error_response",
    "metrics_served",
    "new_registry",
    "of_app",
    "refuse_open_listen",
    "run",
    "serving",
    "start_tracing",
    "watch_disk",
]
