"""The engines that answer: which one serves, its circuit breaker, its own routes and its errors."""

from gateway.engine.backend import Backend, open_backend
from gateway.engine.engines import Engines
from gateway.engine.meter import Meter
from gateway.engine.passthrough import EngineCall, Relay, relay, send_broken
from gateway.engine.spans import WatchedModel

__all__ = [
    "Backend",
    "EngineCall",
    "Engines",
    "Meter",
    "Relay",
    "WatchedModel",
    "open_backend",
    "relay",
    "send_broken",
]
