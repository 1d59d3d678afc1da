"""The inference engines behind the gateway: selection, circuit breakers, pass-through routes and errors."""

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
