"""The models of this process, by the id that a request names and by the role that a loop has."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.engine.models_file import Role
from gateway.engine.served import LoopModel
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest, MemloopError, NotFound

_CHECK_S: Final = 2.0


class Models:
    """All models. Without a models file there is one, whose engine decides about every other id."""

    def __init__(self, models: Sequence[LoopModel], roles: Mapping[Role, str]) -> None:
        """``roles`` names a model for each role; it is empty without a models file."""
        self._models = {model.id: model for model in models}
        self._first = models[0]
        self._roles = roles

    @property
    def writer(self) -> LoopModel:
        """The model that decides what to remember."""
        return self._in_role("writer")

    @property
    def reader(self) -> LoopModel:
        """The model of long reads that name none."""
        return self._in_role("reader")

    @property
    def chat(self) -> LoopModel:
        """The model that clients take when their user names none."""
        return self._in_role("chat")

    def named(self, model_id: str) -> LoopModel:
        """Return the model of this id. Raises NotFound (``model_not_found``) for one that the models file lacks."""
        if model_id in self._models:
            return self._models[model_id]
        if not self._roles:
            return self._first.of_id(model_id)
        raise NotFound(f"There is no model {model_id!r}.", param="model", code="model_not_found")

    def asked(self, model: object) -> LoopModel:
        """Return the model that a passed-through body names. Raises as ``named`` does, and InvalidRequest.

        Without a models file the engine decides about a body that names none.
        """
        if isinstance(model, str):
            return self.named(model)
        if not self._roles:
            return self._first
        raise InvalidRequest("The request must name a model.", param="model")

    def reading(self, model_id: str | None) -> LoopModel:
        """Return the model of a long read, which may name one. Raises as ``named`` does."""
        return self.reader if model_id is None else self.named(model_id)

    def reading_for(self, chat: LoopModel) -> LoopModel:
        """Return the model that reads the oversized parts of a chat: the reader, else the chat's own."""
        return self.reader if self._roles else chat

    def judge_of(self, reader: LoopModel) -> LoopModel:
        """Return the model that judges another one's memory: the judge, else the reading model itself."""
        return self._models[self._roles["judge"]] if "judge" in self._roles else reader

    async def listing(self) -> Json:
        """Return ``GET /v1/models``: the file's models, the chat model first; without a file the engine's list."""
        if not self._roles:
            return await self._first.engines.get_json("models")
        ordered = sorted(self._models.values(), key=lambda model: model is not self.chat)
        return {"object": "list", "data": [model.listing() for model in ordered]}

    async def check(self) -> None:
        """Raise unless an engine of some model answers: a readiness check that bypasses the breakers."""
        checks = (model.engines.check() for model in self._models.values())
        outcomes = await asyncio.gather(*checks, return_exceptions=True)
        failures = [outcome for outcome in outcomes if outcome is not None]
        if len(failures) == len(outcomes):
            raise failures[0]

    async def warning(self) -> str | None:
        """Return a sentence for the operator about the models without an engine, or None."""
        every = list(self._models.values())
        states = await asyncio.gather(*(_state(model) for model in every))
        down = [f"{model.id}: {state}" for model, state in zip(every, states, strict=True) if state is not None]
        return "; ".join(down) or None

    def _in_role(self, role: Role) -> LoopModel:
        return self._models[self._roles[role]] if self._roles else self._first


async def _state(model: LoopModel) -> str | None:
    try:
        async with asyncio.timeout(_CHECK_S):
            await model.engines.check()
    except TimeoutError:
        return "its engine does not answer"
    except MemloopError as error:
        return error.message
    return None
