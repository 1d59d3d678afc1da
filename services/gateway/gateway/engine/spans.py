"""What a trace says of a call at the engine, in the words of OpenTelemetry's conventions for generative AI.

Source: OpenTelemetry semantic conventions, "Generative client AI spans". No attribute holds a text of the user or the
model; the model's name is the client's word, cut short.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

from memloop_service.spans import Attributes, OpenSpan, Span, Value
from memloop_service.tracing import NO_SPAN, open_span, span, tracer

_OPERATIONS: Final = {"completions": "text_completion", "responses": "chat"}
_MODEL_CHARS: Final = 128


def open_call(operation: str, model: object) -> OpenSpan:
    """The span of a client's call, which may end in another task than it began in. ``operation`` as metrics name it."""
    return NO_SPAN if tracer() is None else open_span(*_named(operation, model), kind="client")


def loop_call(model: str) -> AbstractContextManager[Span]:
    """The span of a loop's call."""
    return NO_SPAN if tracer() is None else span(*_named("chat", model), kind="client")


def note_usage(call: Span, *, input_tokens: int | None, output_tokens: int | None) -> None:
    """The tokens, as the engine counted them."""
    counts = {"gen_ai.usage.input_tokens": input_tokens, "gen_ai.usage.output_tokens": output_tokens}
    call.note({name: count for name, count in counts.items() if count is not None})


def note_finish(call: Span, reasons: Sequence[str]) -> None:
    """Why the engine stopped."""
    call.note({"gen_ai.response.finish_reasons": reasons})


def _named(operation: str, model: object) -> tuple[str, Attributes]:
    name = _OPERATIONS.get(operation, operation)
    asked = str(model)[:_MODEL_CHARS]
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": name,
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": asked,
    }
    return f"{name} {asked}", attributes
