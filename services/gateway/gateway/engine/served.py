"""A model that requests name and loops call.

Its specification is completed with id, prompt profile, tokenizer and window. Sources, in order: the specification, the
inference service, then the engine (the id) and safe defaults (the rest).
"""

from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import Final, cast

from pydantic import JsonValue

from gateway.engine.engines import Engines
from gateway.engine.models_file import ModelSpec
from gateway.engine.watched import WatchedModel
from gateway.engine.window import Window
from gateway.metrics import Metrics
from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.loops.forms import Forms
from memloop.ports import Splitter
from memloop.profiles import ProfileError, check_fit, load_profile
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError
from memloop_clients import Dialect, InferenceClient
from memloop_clients.endpoints import ANY, Endpoint, endpoint_at
from memloop_service.http import objects_in

DEFAULT_PROFILE: Final = "default"
_default_profile: Final = cache(partial(load_profile, DEFAULT_PROFILE))


@dataclass(frozen=True, slots=True)
class LoopModel:
    """A model that requests name and loops call: its engines, its tokenizer, and its prompts for its window.

    ``engine_model`` is its name at the engine, to which ``engines`` is bound. ``label`` names it in metrics.
    """

    id: str
    engine_model: str
    engines: Engines
    window: Window
    """What it reads at once, and the prompts with the sizes that fit."""
    splitter: Splitter
    label: str
    endpoint: Endpoint = ANY
    """The kind of its first engine, as far as setting or host name it."""
    forms: Forms = field(default_factory=Forms)
    """The forms in which this process has asked it as a memory writer."""

    @property
    def dialect(self) -> Dialect:
        """The fields that the endpoint accepts, for callers that translate another API's request."""
        return self.endpoint.dialect_of(self.engine_model)

    def of_id(self, model_id: str) -> "LoopModel":
        """Return the same engines, prompts and tokenizer for another of the engine's models."""
        engines, window = self.engines.of_model(model_id), self.window.of(model_id)
        return replace(self, id=model_id, engine_model=model_id, engines=engines, window=window)

    async def look(self) -> None:
        """Ask the endpoint for the window, unless it is known."""
        if not self.window.settled:
            await self.window.look(self.engines.window)

    async def details(self, *, writes: bool) -> Json:
        """Return what is known of how it is asked: its window, the roles of a chat, the formats of replies, and with
        ``writes`` the form as a memory writer.
        """
        dialect = await self.engines.dialect()
        form, *others = self.forms.left(self.window.profile)
        writer: Json = {"form": form, "forms_left": list[JsonValue](others)}
        return {
            **({"memory_writer": writer} if writes else {}),
            "window_tokens": self.window.tokens,
            "dialect": dialect.name,
            "response_format": list[JsonValue](dialect.formats),
            "roles": cast(Json, asdict(dialect.template)),
        }

    def watched(self, metrics: Metrics, *, operation: str) -> WatchedModel:
        """Return the model for a loop, with metrics and a span around each call.

        It raises ContextTruncated for a prompt that was cut.
        """
        model, ask = self.engines.as_model(), self.engines.window
        return WatchedModel(model, self.window, ask, metrics, label=self.label, operation=operation)


async def loop_model(
    spec: ModelSpec, engine: Engines, inference: InferenceClient | None, metrics: Metrics
) -> LoopModel:
    """Complete the specification.

    Raises DependencyError while a service that provides a part does not answer, ProfileError when profile and model do
    not fit.
    """
    launched = await inference.model() if inference else None
    model_id = spec.id or (launched.id if launched else None)
    if model_id is None:
        listed = objects_in((await engine.get_json("models")).get("data"))
        model_id = listed[0].get("id") if listed else None
        if not isinstance(model_id, str):
            raise DependencyError("the engine lists no model; set MEMLOOP_MODEL")
    profile, splitter = spec.profile, spec.splitter
    if profile is None:
        profile = _default_profile() if inference is None else await inference.profile()
    if splitter is None:
        splitter = EstimatingSplitter() if inference is None else TokenizerSplitter(await inference.tokenizer())
    engine_model = spec.engine_model or model_id
    engines, template = engine.of_model(engine_model), launched.template if launched else None
    if template is not None:
        engines.describe(template)
    window = Window(profile, splitter, model_id, show=metrics.window_tokens.labels(model_id).set)
    try:
        check_fit(profile, splitter, window_tokens=None)
        if spec.window_tokens is not None:
            window.set(spec.window_tokens, "a setting")
        elif launched is not None:
            window.set(launched.max_model_len, "the launcher")
        else:
            await window.look(engines.window)
    except ProfileError as error:
        raise ProfileError(f"{spec.place}: {error}" if spec.place else str(error)) from error
    return LoopModel(
        id=model_id,
        engine_model=engine_model,
        engines=engines,
        window=window,
        splitter=splitter,
        label=model_id,
        endpoint=endpoint_at(spec.engine_urls[0], spec.dialect) or ANY,
        forms=Forms(tools=template is None or template.tools),
    )
