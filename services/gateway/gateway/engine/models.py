"""The models of this process, by the id that a request names and by the role that a loop has.

While a candidate takes a share of a model's requests, it is chosen here who serves a request.
"""

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from gateway.engine.engines import with_retry_after
from gateway.engine.models_file import ModelSpec, Role
from gateway.engine.served import LoopModel
from memloop.chunking import EstimatingSplitter
from memloop.ports import Splitter
from memloop.wire.chat import Json
from memloop.wire.errors import MODEL_NOT_FOUND, EngineError, InvalidRequest, MemloopError, NotFound, Unavailable
from memloop.wire.rollouts import RolloutChange
from memloop_service import StillStarting
from memloop_service.http import objects_in

_POINTS: Final = 1 << 64


def target_of(shares: Mapping[str, RolloutChange], model: str, key: str | None) -> str:
    """Return the id of the model that serves the key's requests; without a key each request counts by itself.

    Equal keys get equal answers in every process. A key that a share sends to the candidate goes there under every
    larger share too.
    """
    share = shares.get(model)
    if share is None:
        return model
    text = f"{model}\n{share.candidate}\n{secrets.token_hex(8) if key is None else key}"
    place = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())  # spread evenly
    return share.candidate if place / _POINTS < share.share else model


_CHECK_S: Final = 2.0
_RETRY_AFTER_S: Final = 5.0
_WITHOUT_LIST: Final = frozenset({404, 405, 501})
_OF_THE_ENGINE: Final = frozenset({"root", "permission"})
"""Fields of vLLM's and SGLang's lists: the folders of checkpoints, and rights that say nothing of ours."""
_ROW: Final[Json] = {"object": "model", "created": 0, "owned_by": "engine"}
"""Fields that some engines leave out of a row, or send as another type: LM Studio has no ``created``."""
_NONE_THERE: Final = "No model is there yet."
_LOG = logging.getLogger(__name__)


class Models:
    """All models. Without a models file there is one, whose engine decides about every other id.

    A model is there once its launcher, if it has one, has named its parts; until then requests for it get 503.
    """

    def __init__(
        self,
        specs: Sequence[ModelSpec],
        roles: Mapping[Role, str],
        *,
        wait_s: float = 0.0,
        on_absent: Callable[[str], object] = lambda model_id: None,
    ) -> None:
        """``specs`` are the tables of the models file; without one, they and ``roles`` are empty.

        For ``wait_s`` seconds it is normal that no model is there. ``on_absent`` gets the id, empty without a models
        file, each time that a request asks for a model that is not there.
        """
        self._on_absent = on_absent
        self.shares: Mapping[str, RolloutChange] = {}
        """Of the models that have a candidate."""
        self._specs = {spec.id: spec for spec in specs if roles}
        self._roles = roles
        self._models: dict[str, LoopModel] = {}
        self._missing: dict[str, str] = {}
        self._arrived = asyncio.Event()
        self._normal_until = time.monotonic() + wait_s

    def arrived(self, model: LoopModel, *, configured: str | None = None) -> None:
        """Take a model into service; ``configured`` is its id in the settings, empty if it has none there."""
        self._models[model.id] = model
        self._missing.pop(model.id if configured is None else configured, None)
        self._arrived.set()
        self._arrived = asyncio.Event()

    def missing(self, model_id: str, reason: str) -> None:
        """Keep the reason why a model is not there yet, and log it once."""
        if self._missing.get(model_id) != reason:
            _LOG.warning("the model %s is not there yet: %s", model_id or "of the engine", reason)
        self._missing[model_id] = reason

    @property
    def any(self) -> bool:
        """Whether one model is there."""
        return bool(self._models)

    @property
    def reader(self) -> LoopModel:
        """The model of long reads that name none. Raises Unavailable until it is there, as all roles do."""
        return self._in_role("reader")

    @property
    def chat(self) -> LoopModel:
        """The model that clients take when their user names none."""
        return self._in_role("chat")

    @property
    def counting(self) -> Splitter:
        """The chat model's tokenizer, for requests whose model is not known; an estimate until it is there."""
        chat = self._there("chat")
        return EstimatingSplitter() if chat is None else chat.splitter

    async def writer(self) -> LoopModel:
        """Return the model that decides what to remember, once it is there."""
        while True:
            arrived = self._arrived
            writer = self._there("writer")
            if writer is not None:
                return writer
            await arrived.wait()

    @property
    def may_have_candidates(self) -> bool:
        """Whether there is a models file: without it no candidate takes a share of a model's requests."""
        return bool(self._roles)

    def named(self, model_id: str) -> LoopModel:
        """Return the model of this id.

        Raises NotFound (``model_not_found``) for one that the models file lacks, Unavailable for one not there yet.
        """
        if model_id in self._models:
            return self._models[model_id]
        if not self._roles:
            return self._first.of_id(model_id)
        if model_id in self._specs:
            raise self._absent(f"The model {model_id!r} is not there yet.", model_id)
        raise NotFound(f"There is no model {model_id!r}.", param="model", code=MODEL_NOT_FOUND)

    def lists(self, model_id: str) -> bool:
        """Return whether the models file has a model of this id."""
        return model_id in self._specs

    def serving(self, model_id: str, *, key: str | None) -> LoopModel:
        """Return the model of this id, or the candidate that serves the key's share of its requests.

        A candidate that is not there leaves the request to the model. Raises as ``named`` does.
        """
        target = target_of(self.shares, model_id, key)
        return self._models[target] if target in self._models else self.named(model_id)

    def asked(self, model: object) -> LoopModel:
        """Return the model that a passed-through body names. Raises as ``named`` does, and InvalidRequest.

        Without a models file the engine decides about a body that names none.
        """
        if isinstance(model, str):
            return self.serving(model, key=None)
        if not self._roles:
            return self._first
        raise InvalidRequest("The request must name a model.", param="model")

    def reading(self, model_id: str | None, *, key: str) -> LoopModel:
        """Return the model of a long read, which may name one. Raises as ``serving`` does."""
        named = model_id or self._roles.get("reader")
        return self._first if named is None else self.serving(named, key=key)

    def reading_for(self, chat: LoopModel) -> LoopModel:
        """Return the model that reads the oversized parts of a chat: the reader, else the chat's own."""
        return self.reader if self._roles else chat

    def judge_of(self, reader: LoopModel) -> LoopModel:
        """Return the model that judges another one's memory: the judge, else the reading model itself."""
        return self._in_role("judge") if "judge" in self._roles else reader

    async def listing(self) -> Json:
        """Return ``GET /v1/models``, the chat model first: the file's models; without a file the engine's list."""
        if not self._roles:
            return await _listed_by_engine(self._first)
        ordered = sorted(self._specs.values(), key=lambda spec: spec.id != self._roles["chat"])
        rows: list[JsonValue] = []
        for spec in ordered:
            model = self._models.get(spec.id or "")
            window = spec.window_tokens if model is None else model.window.tokens
            known: Json = {} if window is None else {"max_model_len": window}
            rows.append({"id": spec.id, "object": "model", "created": spec.created, "owned_by": spec.owned_by, **known})
        return {"object": "list", "data": rows}

    async def check(self) -> None:
        """Raise unless an engine of some model answers: a readiness check that bypasses the breakers.

        Raises StillStarting while it is normal that no model is there.
        """
        if not self._models:
            reason = next(iter(self._missing.values()), _NONE_THERE)
            raise StillStarting(reason) if time.monotonic() < self._normal_until else Unavailable(reason)
        checks = (model.engines.check() for model in self._models.values())
        outcomes = await asyncio.gather(*checks, return_exceptions=True)
        failures = [outcome for outcome in outcomes if outcome is not None]
        if len(failures) == len(outcomes):
            raise failures[0]

    async def warning(self) -> str | None:
        """Return a sentence for the operator about the models without an engine, or with a small window; else None."""
        every = list(self._models.values())
        states = await asyncio.gather(*(_state(model) for model in every))
        down = {model.id: state for model, state in zip(every, states, strict=True) if state is not None}
        return "; ".join(f"{name}: {why}" if name else why for name, why in (down | self._missing).items()) or None

    async def details(self, *, writes: bool) -> Json:
        """Return for each model how it is asked, for an operator; with ``writes`` in which form as a memory writer."""
        return {model.label: await model.details(writes=writes) for model in self._models.values()}

    @property
    def _first(self) -> LoopModel:
        if not self._models:
            raise self._absent(_NONE_THERE, "")
        return next(iter(self._models.values()))

    def _absent(self, message: str, model_id: str) -> Unavailable:
        self._on_absent(model_id)
        return Unavailable(message, code="model_not_ready", retry_after_s=_RETRY_AFTER_S)

    def _there(self, role: Role) -> LoopModel | None:
        """Return the model of a role, or None until it is there."""
        return self._models.get(self._roles[role]) if self._roles else next(iter(self._models.values()), None)

    def _in_role(self, role: Role) -> LoopModel:
        return self.named(self._roles[role]) if self._roles else self._first


async def _listed_by_engine(model: LoopModel) -> Json:
    """Return the engine's list, or one of this model alone where the engine has none. Raises EngineError.

    Some URLs of deployments have no list. Clients that name no model take the first one.
    """
    own: Json = {"id": model.id, **_ROW}
    listing: Json = {}
    try:
        listing = await model.engines.get_json("models")
    except EngineError as error:
        if error.engine_status not in _WITHOUT_LIST:
            with_retry_after(error)
            raise
    listed: list[Json] = []
    for row in objects_in(listing.get("data")):  # in OpenAI's form, without what no client needs: where its files lie
        shown = {name: value for name, value in row.items() if name not in _OF_THE_ENGINE}
        listed.append(shown | {key: value for key, value in _ROW.items() if type(shown.get(key)) is not type(value)})
    this = [row for row in listed if row.get("id") == model.id]
    return {**listing, "object": "list", "data": [*(this or [own]), *(row for row in listed if row not in this)]}


async def _state(model: LoopModel) -> str | None:
    try:
        async with asyncio.timeout(_CHECK_S):
            await model.engines.check()
    except TimeoutError:
        return "its engine does not answer"
    except MemloopError as error:
        return error.message
    return model.window.warning()
