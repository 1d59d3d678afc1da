"""Makes a background response of the engine's answer: its events, and the response as it is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gateway.metrics import Metrics
from gateway.responses.answer import Draft
from gateway.responses.asking import Question
from gateway.responses.file_search import Searched
from gateway.responses.making import begun
from gateway.responses.requests import Asked
from memloop.wire.chat import ChatMemory, Json
from memloop.wire.errors import EngineError
from memloop_service.http import object_in, objects_in

_USAGE: Final[dict[Literal["input", "output"], str]] = {"input": "prompt_tokens", "output": "completion_tokens"}


@dataclass(frozen=True, slots=True)
class Made:
    """A response that is complete, and the events that led to it."""

    response: Json
    events: Sequence[Json]


def made_of(
    answer: Json, asked: Asked, question: Question, draft: Draft, memory: ChatMemory | None, search: Searched | None
) -> Made:
    """Return the response of a whole chat completion. Raises EngineError for one without a message."""
    choices = objects_in(answer.get("choices"))
    if not choices or not isinstance(choices[0].get("message"), dict):
        raise EngineError("the engine's answer is not a chat completion")
    assembly, found = begun(asked, draft, question.tools, search)
    events = assembly.feed(choices[0], object_in(choices[0]["message"]))
    response = draft.answered(assembly, object_in(answer.get("usage")), memory, stored=True)
    last: Json = {"type": f"response.{response['status']}", "response": response}
    return Made(response, [*found, *events, last])


def count_tokens(metrics: Metrics, model: str, answer: Json) -> None:
    """Count the tokens of the engine's answer."""
    usage = object_in(answer.get("usage"))
    for kind, field in _USAGE.items():
        if isinstance(tokens := usage.get(field), int):
            metrics.count_tokens(kind, "responses", model, tokens)


def reply_of(answer: Json) -> str:
    """Return the text of the first choice; empty when it has none."""
    choices = objects_in(answer.get("choices"))
    content = object_in(choices[0].get("message")).get("content") if choices else None
    return content if isinstance(content, str) else ""
