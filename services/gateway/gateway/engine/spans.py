"""Trace spans of engine calls, following OpenTelemetry's semantic conventions for generative AI.

Source: OpenTelemetry semantic conventions, "Generative client AI spans". No attribute contains text of the user or the
model; the client-supplied model name is truncated.
"""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

from opentelemetry.trace import Span, SpanKind

from gateway.metrics import Metrics
from memloop.ports import ChatModel, Completion, Prompt
from memloop.wire.errors import DependencyError
from memloop_service.tracing import open_span, span

_OPERATIONS: Final = {"completions": "text_completion", "responses": "chat"}
_MODEL_CHARS: Final = 128


def open_call(operation: str, model: object) -> AbstractContextManager[Span]:
    """Return the span of a client's call; it may end in another task. ``operation`` is named as in the metrics."""
    return open_span(*_named(operation, model), kind=SpanKind.CLIENT)


def loop_call(model: str) -> AbstractContextManager[Span]:
    """Return the span of a loop's call."""
    return span(*_named("chat", model), kind=SpanKind.CLIENT)


def note_usage(call: Span, *, input_tokens: int | None, output_tokens: int | None) -> None:
    """Record the token counts that the engine reported."""
    counts = {"gen_ai.usage.input_tokens": input_tokens, "gen_ai.usage.output_tokens": output_tokens}
    call.set_attributes({name: count for name, count in counts.items() if count is not None})


def note_finish(call: Span, reasons: Sequence[str]) -> None:
    """Record why the engine stopped."""
    call.set_attribute("gen_ai.response.finish_reasons", reasons)


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
        with loop_call(self._model_id) as call:
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
            note_finish(call, (completion.finish_reason,))
        return completion


def _named(operation: str, model: object) -> tuple[str, dict[str, str]]:
    name = _OPERATIONS.get(operation, operation)
    asked = str(model)[:_MODEL_CHARS]
    attributes = {
        "gen_ai.operation.name": name,
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": asked,
    }
    return f"{name} {asked}", attributes
