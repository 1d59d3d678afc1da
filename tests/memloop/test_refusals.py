"""The words of an error body, and the fields of ours that it refuses."""

from typing import Any

import orjson
import pytest

from memloop.wire.chat import Json
from memloop.wire.errors import EngineError
from memloop_clients.engine import engine_error
from memloop_clients.refusals import Fault, refused_fields
from tests.fakes import strict_shapes as shape
from tests.fakes.strict_shapes import Refused

SENT: Json = {
    "model": "m",
    "messages": [{"role": "assistant", "content": "x", "reasoning_content": "why"}],
    "temperature": 0.2,
    "top_p": 0.9,
    "max_tokens": 7,
    "tools": [{}],
    "tool_choice": "required",
    "chat_template_kwargs": {},
}


def named(refused: Refused) -> set[str]:
    error = engine_error(refused.status, orjson.dumps(refused.body), refused.headers)
    assert isinstance(error, EngineError)
    return set(refused_fields(error, SENT))


REFUSALS: list[tuple[Refused, set[str]]] = [
    (shape.unrecognized(["chat_template_kwargs"]), {"chat_template_kwargs"}),
    (shape.unrecognized(["chat_template_kwargs", "top_p"]), {"chat_template_kwargs", "top_p"}),
    (shape.unsupported_parameter("max_tokens", instead="max_completion_tokens"), {"max_tokens"}),
    (shape.unsupported_value("temperature", 0.2), {"temperature"}),
    (shape.google_unknown(["chat_template_kwargs", "top_p"]), {"chat_template_kwargs", "top_p"}),
    (shape.anthropic_extra(["chat_template_kwargs"]), {"chat_template_kwargs"}),
    (shape.anthropic(400, "`temperature` and `top_p` cannot both be specified. Please use only one."), {"top_p"}),
    (shape.anthropic(400, "`temperature` is deprecated for this model."), {"temperature"}),
    (shape.openrouter(404, "No endpoints found that support the provided 'tool_choice' value."), {"tool_choice"}),
    (shape.lmstudio(400, "Invalid tool_choice type: 'object'. Supported string values: none"), {"tool_choice"}),
    (shape.fastapi_extra(["chat_template_kwargs"]), {"chat_template_kwargs"}),
    (
        shape.azure(400, "400", "Validation error at #/chat_template_kwargs: Extra inputs are not permitted"),
        {"chat_template_kwargs"},
    ),
    (shape.openai(400, "Unknown parameter: 'messages[0].reasoning_content'."), {"reasoning_content"}),
]


@pytest.mark.parametrize(("refused", "fields"), REFUSALS)
def test_a_refusal_names_our_fields(refused: Refused, fields: set[str]) -> None:
    assert named(refused) == fields


NO_REFUSALS: list[Refused] = [
    shape.vllm(400, "'max_tokens' or 'max_completion_tokens' is too large: 9. The context has 5.", param="max_tokens"),
    shape.openai(400, "maximum context length is 8192 tokens", param="messages", code="context_length_exceeded"),
    shape.openai(401, "temperature: Extra inputs are not permitted"),
    shape.openai(429, "Unsupported parameter: 'max_tokens'", param="max_tokens"),
    shape.openai(400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
    shape.openai(400, "Unrecognized request argument supplied: top_k"),
    shape.ollama(400, "m does not support tools"),
    shape.openai(404, "The model `m` does not exist or you do not have access to it.", code="model_not_found"),
]


@pytest.mark.parametrize("refused", NO_REFUSALS)
def test_an_error_about_something_else_names_none(refused: Refused) -> None:
    assert named(refused) == set()


def test_openais_effort_of_none_is_learned_though_no_effort_was_sent() -> None:
    words = "Function tools with reasoning_effort are not supported for m. Set reasoning_effort to 'none'."
    assert named(shape.openai(400, words, param="reasoning_effort")) == {"reasoning_effort"}
    without = words.replace("'none'", "nothing")
    assert named(shape.openai(400, without, param="reasoning_effort")) == set()


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"error": {"message": "a", "param": "p", "code": "c"}}, Fault("a", "p", "c")),
        ([{"error": {"message": "a", "code": 400}}], Fault("a")),
        ({"message": "flat", "code": 17}, Fault("flat")),
        ({"error": "bare"}, Fault("bare")),
        ({"detail": "Not Found"}, Fault("Not Found")),
        ({"detail": [{"loc": ["body", "x"], "msg": "bad"}]}, Fault("body.x: bad.")),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": '{"error": {"message": "why"}}'}}},
            Fault("Provider returned error why"),
        ),
        ([], Fault("[]")),
        ("x", Fault('"x"')),
    ],
)
def test_an_error_body_of_any_shape_gives_its_words(body: Any, fault: Fault) -> None:
    assert Fault.of(orjson.dumps(body)) == fault


def test_an_error_that_is_not_json_is_its_text() -> None:
    assert Fault.of(b"upstream \xff gone") == Fault("upstream � gone")
