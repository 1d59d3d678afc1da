"""Completes a model's specification: its id, prompt profile, tokenizer and window.

Sources, in order: the specification, the inference service, then the engine (the id) and safe defaults (the rest).
"""

from dataclasses import dataclass, replace
from typing import Final

from gateway.engine.engines import Engines
from gateway.engine.models_file import ModelSpec
from gateway.engine.spans import WatchedModel
from gateway.metrics import Metrics
from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.ports import Splitter
from memloop.profiles import Profile, ProfileError, check_fit, load_profile
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError
from memloop_clients import Dialect, InferenceClient
from memloop_clients.dialects import ANY, Endpoint, endpoint_at

DEFAULT_PROFILE: Final = "default"


@dataclass(frozen=True, slots=True)
class LoopModel:
    """A model that requests name and loops call: its engines, its prompts and its tokenizer.

    ``engine_model`` is its name at the engine, to which ``engines`` is bound. ``label`` names it in metrics.
    """

    id: str
    engine_model: str
    engines: Engines
    profile: Profile
    splitter: Splitter
    label: str
    window_tokens: int | None = None
    endpoint: Endpoint = ANY
    """The kind of its first engine, as far as setting or host name it."""

    @property
    def dialect(self) -> Dialect:
        """The fields that the endpoint accepts, for callers that translate another API's request."""
        return self.endpoint.dialect_of(self.engine_model)

    def renames(self, named: object) -> bool:
        """Return whether the engine needs another name than the request's ``model``.

        A candidate serves requests that name its incumbent. The engine decides about a request that names none.
        """
        return (named if isinstance(named, str) else self.id) != self.engine_model

    def of_id(self, model_id: str) -> "LoopModel":
        """Return the same engines, prompts and tokenizer for another of the engine's models."""
        engines = self.engines.of_model(model_id)
        return replace(self, id=model_id, engine_model=model_id, engines=engines, window_tokens=None)

    def watched(self, metrics: Metrics, *, operation: str) -> WatchedModel:
        """Return the model for a loop, with metrics and a span around each call."""
        return WatchedModel(self.engines, metrics, model_id=self.id, label=self.label, operation=operation)


async def loop_model(spec: ModelSpec, engine: Engines, inference: InferenceClient | None) -> LoopModel:
    """Complete the specification.

    Raises DependencyError while a service that provides a part does not answer, ProfileError when profile and model do
    not fit.
    """
    launched = await inference.model() if inference else None
    model_id = spec.id or (launched.id if launched else _first_id(await engine.get_json("models")))
    profile, splitter = await _profile(spec, inference), await _splitter(spec, inference)
    window_tokens = spec.window_tokens or (launched.max_model_len if launched else None)
    if isinstance(splitter, TokenizerSplitter):  # an estimate is too rough to reject prompts by
        _check_fit(spec, profile, splitter, window_tokens)
    engine_model = spec.engine_model or model_id
    return LoopModel(
        id=model_id,
        engine_model=engine_model,
        engines=engine.of_model(engine_model),
        profile=_within(profile, spec.window_tokens),
        splitter=splitter,
        label=model_id,
        window_tokens=window_tokens,
        endpoint=endpoint_at(spec.engine_urls[0], spec.dialect) or ANY,
    )


def _check_fit(spec: ModelSpec, profile: Profile, splitter: TokenizerSplitter, window_tokens: int | None) -> None:
    try:
        check_fit(profile, splitter, window_tokens=window_tokens)
    except ProfileError as error:
        raise ProfileError(f"{spec.place}: {error}" if spec.place else str(error)) from error


def _within(profile: Profile, window_tokens: int | None) -> Profile:
    """Return the profile for at most the specified window."""
    if window_tokens is None or window_tokens >= profile.budget.window_tokens:
        return profile
    return replace(profile, budget=replace(profile.budget, window_tokens=window_tokens))


def _first_id(listing: Json) -> str:
    models = listing.get("data")
    first = models[0] if isinstance(models, list) and models else None
    model_id = first.get("id") if isinstance(first, dict) else None
    if not isinstance(model_id, str):
        raise DependencyError("the engine lists no model; set MEMLOOP_MODEL")
    return model_id


async def _profile(spec: ModelSpec, inference: InferenceClient | None) -> Profile:
    if spec.profile is not None:
        return spec.profile
    return load_profile(DEFAULT_PROFILE) if inference is None else await inference.profile()


async def _splitter(spec: ModelSpec, inference: InferenceClient | None) -> Splitter:
    if spec.splitter is not None:
        return spec.splitter
    return EstimatingSplitter() if inference is None else TokenizerSplitter(await inference.tokenizer())
