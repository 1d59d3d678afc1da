"""HTTP clients of the processes: the engine, the memory store, the inference launcher. None of them retries."""

from memloop.clients.engine import Dialect, EngineBusy, EngineClient
from memloop.clients.http import RawResponse, Timeouts
from memloop.clients.inference import InferenceClient, ServedModel
from memloop.clients.store import NamespaceIndex, StoreClient

__all__ = [
    "Dialect",
    "EngineBusy",
    "EngineClient",
    "InferenceClient",
    "NamespaceIndex",
    "RawResponse",
    "ServedModel",
    "StoreClient",
    "Timeouts",
]
