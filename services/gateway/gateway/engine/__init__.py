"""The inference engines behind the gateway: models by id and role, circuit breakers, pass-through routes and errors."""

from gateway.engine.backend import Backend, open_backend
from gateway.engine.call import EngineCall, Meter, Outgoing, Relay, counted, for_engine
from gateway.engine.engines import answer_in, refusal
from gateway.engine.models import Models
from gateway.engine.models_file import ModelsConfig, read_models, refusing_wrong_models
from gateway.engine.rollouts import Rollouts
from gateway.engine.served import LoopModel
from gateway.engine.streams import only_text, pass_through, relay, send_broken
from gateway.engine.watched import Affine
from memloop_clients.engine import CHAT_PATH

__all__ = [
    "CHAT_PATH",
    "Affine",
    "Backend",
    "EngineCall",
    "LoopModel",
    "Meter",
    "Models",
    "ModelsConfig",
    "Outgoing",
    "Relay",
    "Rollouts",
    "answer_in",
    "counted",
    "for_engine",
    "only_text",
    "open_backend",
    "pass_through",
    "read_models",
    "refusal",
    "refusing_wrong_models",
    "relay",
    "send_broken",
]
