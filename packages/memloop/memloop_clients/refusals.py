"""Interprets an endpoint's error: its message in any shape, the fields that it rejects, or a prompt beyond the window.

OpenAI's clients shorten a chat when they see the code ``context_length_exceeded``, Anthropic's when they see the words
of Anthropic's API. Few servers send either. Source of the words: the errors of OpenAI, Anthropic, Gemini, vLLM, SGLang,
llama.cpp, Ollama, LM Studio and OpenRouter.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self, cast

import orjson

from memloop.wire.base import object_in, objects_in
from memloop.wire.chat import EARLIER_THINKING, LIMIT_FIELDS, RESPONSE_FORMAT, THINKING_SWITCH, Json
from memloop.wire.errors import CONTEXT_LENGTH_EXCEEDED, EngineError

_EFFORT: Final = "reasoning_effort"
_WANTS_NONE: Final = "'none'"
"""OpenAI asks for this effort beside tools, even of requests that name no effort."""
_STATUSES: Final = frozenset({400, 404, 422})
_FIELDS: Final = LIMIT_FIELDS | {
    "temperature",
    "top_p",
    "seed",
    "tool_choice",
    _EFFORT,
    THINKING_SWITCH,
    EARLIER_THINKING,
}
"""What may be left out or sent otherwise without changing the prompt."""
_REFUSES: Final = re.compile(
    r"unsupported|unrecogni[sz]ed|unknown (name|parameter|field|argument)|deprecated|cannot both|may not be enabled"
    r"|(not|n't) (be )?(supported|support|permitted|allowed|accepted)|extra (inputs|fields)|invalid tool_choice"
    r"|no endpoints found that support",
    re.IGNORECASE,
)
"""Words of a refusal of a field. A limit that is too large for the window is none."""
_FORMAT: Final = re.compile(
    r"response.?format|json.?(schema|mode|object)|structured.?output|\bschema\b|grammar|guided|requested parameters"
    r"|mime.?type",
    re.IGNORECASE,
)
"""Words of a refusal of ``response_format``, of one of its types or of a part of its schema."""
_FORMAT_STATUSES: Final = _STATUSES | {415, 500, 501}
"""llama.cpp and Ollama answer 500 when they cannot make a grammar of a schema."""
_WITHOUT_A_NAME: Final = frozenset({400, 422})
_ONE_OF_TWO: Final = re.compile(r"cannot both|only one", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fault:
    """The part of an error body that is passed on."""

    message: str
    param: str | None = None
    code: str | None = None

    @classmethod
    def of(cls, raw: bytes) -> Self:
        """Parse OpenAI's envelope, Gemini's list of it, a flat object, text, FastAPI's ``detail``, or any text."""
        text = raw.decode("utf-8", "replace")
        try:
            value: object = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return cls(text)
        fields = next(iter(objects_in(value)), object_in(value))
        inner = fields.get("error")
        if isinstance(inner, str):
            return cls(inner)
        fields = object_in(inner) or fields
        return cls(" ".join(_words(fields)) or text, _text(fields.get("param")), _text(fields.get("code")))


def refused_fields(error: EngineError, sent: Json) -> frozenset[str]:
    """Return the request fields that the error rejects; none when it has another reason."""
    message = error.message
    if error.engine_status not in _STATUSES or not _REFUSES.search(message):
        return frozenset()
    sent_fields = [name for name in _FIELDS if _is_sent(name, sent) or (name == _EFFORT and _WANTS_NONE in message)]
    if error.param in sent_fields:
        return frozenset({error.param})
    named = frozenset(name for name in sent_fields if re.search(rf"\b{name}\b", message))
    if _ONE_OF_TWO.search(message) and named >= {"temperature", "top_p"}:
        return frozenset({"top_p"})
    return named


def refuses_format(error: EngineError, sent: Json) -> bool:
    """Return whether the error rejects the request's ``response_format`` in words of its own."""
    refuses = error.engine_status in _FORMAT_STATUSES and _FORMAT.search(error.message) is not None
    return refuses and RESPONSE_FORMAT in sent


def may_refuse_format(error: EngineError, sent: Json) -> bool:
    """Return whether the error names no reason, so that its reason may be the ``response_format``."""
    silent = error.engine_status in _WITHOUT_A_NAME and error.code != CONTEXT_LENGTH_EXCEEDED
    return silent and RESPONSE_FORMAT in sent


def _is_sent(name: str, sent: Json) -> bool:
    if name != EARLIER_THINKING:
        return name in sent
    return any(name in message for message in objects_in(sent.get("messages")))


def _words(fields: Mapping[str, object]) -> Iterator[str]:
    """Return the message; OpenRouter's copy of its provider's error; FastAPI's faults with their places."""
    if message := _text(fields.get("message")):
        yield message
    if raw := _text(object_in(fields.get("metadata")).get("raw")):
        yield Fault.of(raw.encode()).message
    detail = fields.get("detail")
    if isinstance(detail, str):
        yield detail
    for fault in objects_in(detail):
        place = ".".join(map(str, cast(list[object], fault.get("loc") or ())))
        yield f"{place}: {fault.get('msg')}."


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


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
