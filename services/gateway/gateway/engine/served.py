"""A model that requests name and loops call.

Its specification is completed with id, prompt profile, tokenizer and window. Sources, in order: the specification, the
inference service, then the engine (the id) and safe defaults (the rest).
"""

import time
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import Final, cast

from opentelemetry.trace import SpanKind
from pydantic import JsonValue

from gateway.engine.engines import Engines
from gateway.engine.models_file import ModelSpec
from gateway.engine.window import Uncut, Window
from gateway.metrics import Metrics
from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.loops.forms import Forms
from memloop.ports import ChatModel, Completion, Prompt, Splitter
from memloop.profiles import ProfileError, load_profile
from memloop.wire.chat import Json
from memloop.wire.errors import DependencyError
from memloop_clients import Dialect, InferenceClient
from memloop_clients.dialects import ANY, Endpoint, endpoint_at
from memloop_service.http import objects_in
from memloop_service.tracing import model_call, note_usage, span

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

    def watched(self, metrics: Metrics, *, operation: str) -> Uncut:
        """Return the model for a loop, with metrics and a span around each call.

        It raises ContextTruncated for a prompt that was cut.
        """
        model = WatchedModel(self.engines, metrics, model_id=self.id, label=self.label, operation=operation)
        return Uncut(model, self.window, self.engines.window, metrics, label=self.label)


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
        window.check()
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


class WatchedModel:
    """A ChatModel with metrics and a span around each call. Put it inside a ``Journaled``: replays do not count."""

    def __init__(self, model: ChatModel, metrics: Metrics, *, model_id: str, label: str, operation: str) -> None:
        """``label`` names the model in metrics, ``model_id`` in spans."""
        self._model = model
        self._metrics = metrics
        self._model_id = model_id
        self._label = label
        self._operation = operation

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the inner model's reply and raise its errors."""
        began = time.perf_counter()
        with span(*model_call("chat", self._model_id), kind=SpanKind.CLIENT) as call:
            try:
                completion = await self._model.complete(prompt)
            except DependencyError as error:
                self._metrics.count_error(error, model=self._label)
                raise
            self._metrics.count_call(self._label, time.perf_counter() - began)
            usage = completion.usage
            self._metrics.count_tokens("input", self._operation, self._label, usage.input_tokens)
            self._metrics.count_tokens("output", self._operation, self._label, usage.output_tokens)
            note_usage(call, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
            call.set_attribute("gen_ai.response.finish_reasons", (completion.finish_reason,))
        return completion


@dataclass(frozen=True, slots=True)
class Affine:
    """A ChatModel whose prompts have the key of one document; each segment of those read side by side has its own.

    The key comes from the record of the read, never from a field of the client's request.
    """

    model: ChatModel
    key: str

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the inner model's reply."""
        segment = prompt.branch.partition("/")[0]  # ``s3``; the questions of one document share its key
        key = f"{self.key}/{segment}" if segment.startswith("s") else self.key
        return await self.model.complete(replace(prompt, affinity=key))
