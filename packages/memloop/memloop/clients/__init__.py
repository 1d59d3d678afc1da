"""HTTP clients of the processes: engine, memory store, inference launcher, gateway. None of them retries."""

from memloop.clients.balancing import Balancing, CircuitOpen, ReplicaLoad
from memloop.clients.dialects import Dialect, DialectName
from memloop.clients.engine import EngineBusy, EngineClient
from memloop.clients.gateway import GatewayClient
from memloop.clients.http import RawResponse
from memloop.clients.inference import InferenceClient, ServedModel
from memloop.clients.origin import Timeouts
from memloop.clients.store import NamespaceIndex, StoreClient
from memloop.clients.urls import balanced_url, balanced_urls, plain_url, urls_in

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
    "StoreClient",
    "Timeouts",
    "balanced_url",
    "balanced_urls",
    "plain_url",
    "urls_in",
]
