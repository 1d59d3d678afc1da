"""Determines the id, prompt profile and tokenizer of the model that the loops call.

Sources, in order: the settings, the inference service, then the engine (the id) and safe defaults (the rest).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from gateway.engine.engines import Engines
from gateway.settings import GatewaySettings
from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.clients import InferenceClient
from memloop.ports import Splitter
from memloop.profiles import Profile, check_fit, load_profile
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError

DEFAULT_PROFILE = "default"
_POLL_S = 0.5
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class LoopModel:
    """The model that the loops call."""

    id: str
    profile: Profile
    splitter: Splitter


async def loop_model(settings: GatewaySettings, engine: Engines, inference: InferenceClient | None) -> LoopModel:
    """Return the loops' model. Waits up to ``startup_wait_s`` for the services that provide its parts.

    Raises DependencyError when none answers in time, ProfileError and OSError on wrong settings.
    """
    deadline = time.monotonic() + settings.startup_wait_s
    served = await _wait(inference.model, deadline) if inference else None
    found = LoopModel(
        id=settings.model or (served.id if served else await _wait(lambda: _model_id(engine), deadline)),
        profile=await _wait(lambda: _profile(settings, inference), deadline),
        splitter=await _wait(lambda: _splitter(settings, inference), deadline),
    )
    if isinstance(found.splitter, TokenizerSplitter):  # an estimate is too rough to reject prompts by
        check_fit(found.profile, found.splitter, window_tokens=served.max_model_len if served else None)
    return found


async def _model_id(engine: Engines) -> str:
    return _first_id(await engine.get_json("models"))


def _first_id(listing: Json) -> str:
    models = listing.get("data")
    first = models[0] if isinstance(models, list) and models else None
    model_id = first.get("id") if isinstance(first, dict) else None
    if not isinstance(model_id, str):
        raise DependencyError("the engine lists no model; set MEMLOOP_MODEL")
    return model_id


async def _profile(settings: GatewaySettings, inference: InferenceClient | None) -> Profile:
    if settings.profile is not None or inference is None:
        return load_profile(settings.profile or DEFAULT_PROFILE)
    return await inference.profile()


async def _splitter(settings: GatewaySettings, inference: InferenceClient | None) -> Splitter:
    if settings.tokenizer is not None:
        return TokenizerSplitter(await asyncio.to_thread(settings.tokenizer.read_bytes))
    if inference is not None:
        return TokenizerSplitter(await inference.tokenizer())
    return EstimatingSplitter()


async def _wait(ask: Callable[[], Awaitable[_Answer]], deadline: float) -> _Answer:
    while True:
        try:
            return await ask()
        except DependencyError:
            if time.monotonic() >= deadline:
                raise
        await asyncio.sleep(_POLL_S)
