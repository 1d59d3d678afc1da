"""HTTP clients of the processes: engine, memory store, inference launcher, gateway. None of them retries."""

from memloop_clients.balancing.balancer import ReplicaLoad
from memloop_clients.balancing.replica import Balancing, CircuitOpen
from memloop_clients.dialects import Dialect
from memloop_clients.endpoints import DialectName
from memloop_clients.engine import EngineBusy, EngineClient
from memloop_clients.gateway import GatewayClient
from memloop_clients.inference import InferenceClient, ServedModel
from memloop_clients.store import NamespaceIndex, StoreClient
from memloop_clients.transport import RawResponse, Timeouts
from memloop_clients.urls import balanced_url, balanced_urls, plain_url, urls_in
from memloop_clients.windows import ServedWindow

__all__ = [
    "Balancing",
    "CircuitOpen",
    "Dialect",
    "DialectName",
    "EngineBusy",
    "EngineClient",
    "GatewayClient",
    "InferenceClient",
    "NamespaceIndex",
    "RawResponse",
    "ReplicaLoad",
    "ServedModel",
    "ServedWindow",
    "StoreClient",
    "Timeouts",
    "balanced_url",
    "balanced_urls",
    "plain_url",
    "urls_in",
]
