"""A refusal of a request beyond the model's window is recognized by the words of each server."""

import orjson
import pytest

from memloop_clients.engine import engine_error
from memloop_clients.refusals import Overflow, overflow_of
from tests.fakes import strict_shapes as shape
from tests.fakes.strict_shapes import Refused

STATED = [
    (
        (
            "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (1000 in the "
            "messages, 4000 in the completion). Please reduce the length of the messages or completion."
        ),
        Overflow(1000, 4000, 4097),
    ),
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        Overflow(9000, None, 8192),
    ),
    (
        (
            "This model's maximum context length is 512 tokens. However, your prompt contains at least 513 "
            "input tokens, which exceeds this limit even without any output tokens. Please reduce it."
        ),
        Overflow(513, None, 512),
    ),
    (
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum context length is 512 "
            "tokens and your request has 400 input tokens (1024 > 512 - 400)."
        ),
        Overflow(400, 1024, 512),
    ),
    (
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
        Overflow(9000, None, 8192),
    ),
    (
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        Overflow(9000, None, 8192),
    ),
    (
        (
            "Requested token count exceeds the model's maximum context length of 262144 tokens. You requested a total "
            "of 262462 tokens: 230462 tokens from the input messages and 32000 tokens for the completion."
        ),
        Overflow(230462, 32000, 262144),
    ),
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        Overflow(1200000, None, 1048576),
    ),
    (
        "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
        Overflow(9000, None, 8192),
    ),
    ("prompt is too long: 210000 tokens > 200000 maximum", Overflow(210000, None, 200000)),
    (
        (
            "input length and `max_tokens` exceed context limit: 186433 + 20000 > 200000, decrease input length or "
            "`max_tokens` and try again"
        ),
        Overflow(186433, 20000, 200000),
    ),
    ("input length exceeds the context length", Overflow()),
    ("Trying to keep the first 9000 tokens when context overflows.", Overflow()),
    ("Your input exceeds the context window of this model.", Overflow()),
]


@pytest.mark.parametrize(("message", "stated"), STATED, ids=lambda value: str(value)[:40])
def test_the_words_of_a_server_state_sizes(message: str, stated: Overflow) -> None:
    assert overflow_of(message) == stated


@pytest.mark.parametrize(
    "message",
    [
        "too long",
        "The model `m` does not exist",
        "Unsupported parameter: 'max_tokens' is not supported with this model.",
        "max_tokens is too large: 9000. This model supports at most 4096 completion tokens.",
        "Request too large for m on tokens per min (TPM): Limit 30000, Requested 40000.",
    ],
)
def test_another_fault_is_none(message: str) -> None:
    assert overflow_of(message) is None


@pytest.mark.parametrize(
    "refused",
    [
        shape.vllm(400, "This model's maximum context length is 512 tokens. However, your prompt contains 513 …"),
        shape.openai(400, "This model's maximum context length is 65536 tokens.", code="invalid_request_error"),
        shape.azure(400, "400", "This model's maximum context length is 65536 tokens."),
    ],
    ids=["a number for a code", "a type for a code", "a status for a code"],
)
def test_such_a_refusal_has_the_code_that_openais_clients_look_for(refused: Refused) -> None:
    assert engine_error(refused.status, orjson.dumps(refused.body), {}).code == "context_length_exceeded"


def test_a_busy_server_that_speaks_of_a_window_is_only_busy() -> None:
    limited = shape.openai(429, "Rate limit: the maximum context length of all requests is used.", code="rate_limit")
    assert engine_error(limited.status, orjson.dumps(limited.body), {}).code == "rate_limit"
