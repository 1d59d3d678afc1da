"""The inference engines behind the gateway: models by id and role, circuit breakers, pass-through routes and errors."""

from gateway.engine.backend import Backend as Backend
from gateway.engine.backend import open_backend as open_backend
from gateway.engine.call import EngineCall as EngineCall
from gateway.engine.call import Meter as Meter
from gateway.engine.call import More as More
from gateway.engine.call import Outgoing as Outgoing
from gateway.engine.call import Relay as Relay
from gateway.engine.call import counted as counted
from gateway.engine.call import for_engine as for_engine
from gateway.engine.engines import answer_in as answer_in
from gateway.engine.engines import refusal as refusal
from gateway.engine.models_file import ModelsConfig as ModelsConfig
from gateway.engine.models_file import read_models as read_models
from gateway.engine.models_file import refusing_wrong_models as refusing_wrong_models
from gateway.engine.rollouts import Rollouts as Rollouts
from gateway.engine.served import LoopModel as LoopModel
from gateway.engine.streams import Passing as Passing
from gateway.engine.streams import only_text as only_text
from gateway.engine.streams import pass_through as pass_through
from gateway.engine.streams import send_broken as send_broken
from gateway.engine.watched import Affine as Affine
from memloop_clients.engine import CHAT_PATH as CHAT_PATH
