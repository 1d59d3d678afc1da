"""Recognizes an endpoint's refusal of a request that exceeds the model's window, by its words.

OpenAI's clients shorten a chat when they see the code ``context_length_exceeded``, Anthropic's when they see the words
of Anthropic's API. Few servers send either. Source of the words: the errors of OpenAI, Anthropic, Gemini, vLLM, SGLang,
llama.cpp, Ollama, LM Studio and OpenRouter.
"""

import re
from dataclasses import dataclass
from typing import Final

_READ_CHARS: Final = 2_000
_MEANS_A_WINDOW: Final = re.compile(
    r"context (length|window|size|limit|overflow)|(model|prompt|input) length|number of tokens allowed"
    r"|prompt is too long|max_new_tokens",
    re.IGNORECASE,
)
_MEANS_BEYOND: Final = re.compile(r"exceed|maximum|longer than|too long|too large|overflow|must be <", re.IGNORECASE)
_WINDOW: Final = re.compile(
    r"(?:context (?:length|limit|size)|model length|tokens allowed)[`: ]*(?:is|of|\(|\d+ \+ \d+ >) ?(?P<a>\d+)"
    r"|tokens > (?P<b>\d+)"
)
_INPUT: Final = re.compile(
    r"(?P<a>\d+) (?:input tokens|tokens from the input|in the messages)|resulted in (?P<b>\d+) tokens"
    r"|(?:input|request) \((?P<c>\d+) tokens\)|token count \((?P<d>\d+)\)|prompt is too long: (?P<e>\d+)"
    r"|length (?P<f>\d+)\)|context limit: (?P<g>\d+)"
)
_OUTPUT: Final = re.compile(
    r"(?P<a>\d+) (?:output tokens|tokens for the completion|in the completion)|too large: (?P<b>\d+)"
    r"|context limit: \d+ \+ (?P<c>\d+)"
)


@dataclass(frozen=True, slots=True)
class Overflow:
    """What a refusal states of the request and the window, in tokens; None for what it does not state."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    window_tokens: int | None = None


def overflow_of(message: str) -> Overflow | None:
    """Return what the message states at its beginning, or None for one that has another reason."""
    message = message[:_READ_CHARS]
    if not (_MEANS_A_WINDOW.search(message) and _MEANS_BEYOND.search(message)):
        return None
    return Overflow(_number(_INPUT, message), _number(_OUTPUT, message), _number(_WINDOW, message))


def _number(pattern: re.Pattern[str], message: str) -> int | None:
    found = pattern.search(message)
    return None if found is None else next(int(digits) for digits in found.groups() if digits)
