"""Selects the parts of a chat that exceed the model's window, and the question in its last user message.

A part is the text of one user or tool message. The largest are selected until the rest and the parts' memories fit. In
the last user message the first and last paragraphs stay, as either may hold the question; the text between them is the
part.
"""

from dataclasses import dataclass
from typing import Final

from gateway.chat.chat import last_user_index
from memloop.ports import Splitter
from memloop.profiles import Profile
from memloop.wire.chat import ChatRequest, Json
from memloop.wire.errors import CONTEXT_LENGTH_EXCEEDED, InvalidRequest
from memloop_service.http import json_text, objects_in

ANY_QUESTION: Final = "What does this text say?"
_READABLE: Final = frozenset({"user", "tool"})
_PARAGRAPHS: Final = ("\n\n", "\n")
_MOST_AROUND_MESSAGE: Final = 8
_MOST_AROUND_CHAT: Final = 32
_USUALLY_AROUND_MESSAGE: Final = 5
_USUALLY_AROUND_CHAT: Final = 6
"""What the templates of ChatML and Llama 3 add: role and marks of each message, and the head of the reply."""
_TOKENS_AROUND_TOOLS: Final = 32
_TOKENS_AROUND_MEMORY: Final = 96
_USUAL_REPLY_TOKENS: Final = 1024
_LIMIT_FIELDS: Final = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True, slots=True)
class Part:
    """A text to read. ``before`` and ``after`` are the parts of its message that stay."""

    message_index: int
    text: str
    tokens: int
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Oversize:
    """The parts to read, in message order, and the question to read them for."""

    question: str
    parts: tuple[Part, ...]


def oversize(
    chat: ChatRequest, fields: Json, *, profile: Profile, splitters: tuple[Splitter, Splitter], window: int
) -> Oversize | None:
    """Return the parts to read, or None when the prompt fits. CPU work: run it in a thread.

    ``splitters`` are those of the chat's model and of the reader, whose ``profile`` is given.

    Raises InvalidRequest (400, ``context_length_exceeded``) when the prompt would still not fit.
    """
    splitter, of_reader = splitters
    texts = [message.text() for message in chat.messages]
    sizes = [splitter.count(text) for text in texts]
    around = len(sizes) * _MOST_AROUND_MESSAGE + _MOST_AROUND_CHAT
    asked_tokens = sum(sizes) + around + _called(fields, splitter)
    # Reserved for the reply and for memories, which get at most a quarter of the window
    limits = [limit for name in _LIMIT_FIELDS if isinstance(limit := fields.get(name), int)]
    reply = limits[0] if limits else min(_USUAL_REPLY_TOKENS, window // 4)
    recalls = chat.memory is not None and chat.memory.mode in {"readwrite", "read"}
    memories = min(chat.memory.max_tokens, window // 4) if chat.memory is not None and recalls else 0
    excess = asked_tokens + reply + memories - window
    if excess <= 0:
        return None
    last = last_user_index(chat.messages)
    most = profile.budget.question_tokens
    asked = question_in(texts[last], of_reader, most_tokens=most) if last is not None else ("", "", "")
    question = " ".join(side.strip() for side in (asked[0], asked[2]) if side.strip()) or ANY_QUESTION
    first, between, end = asked
    found = [
        Part(index, texts[index], sizes[index])
        if index != last
        else Part(index, between, splitter.count(between), before=first, after=end)
        for index, message in enumerate(chat.messages)
        if index == last or message.role in _READABLE
    ]
    cost = profile.prompts["read"].sampling.max_tokens + _TOKENS_AROUND_MEMORY
    return Oversize(question, _enough(found, excess, cost, window))


def prompt_tokens(chat: ChatRequest, fields: Json, splitter: Splitter) -> int:
    """Estimate the tokens of the whole prompt, by the tokenizer and the usual chat template. CPU work."""
    texts = sum(splitter.count(message.text()) for message in chat.messages)
    around = len(chat.messages) * _USUALLY_AROUND_MESSAGE + _USUALLY_AROUND_CHAT
    return texts + around + _called(fields, splitter) + (_TOKENS_AROUND_TOOLS if fields.get("tools") else 0)


def question_in(text: str, splitter: Splitter, *, most_tokens: int) -> tuple[str, str, str]:
    """Split the text into first paragraph, middle and last paragraph; each side has at most half of ``most_tokens``.

    A text that fits entirely is all question. A side that is too long is cut at a line break; the last one anywhere.
    """
    if splitter.count(text) <= most_tokens:
        return text, "", ""
    half = most_tokens // 2
    start = len(text) - len(text.lstrip())
    heads = (text[: max(0, text.find(mark, start))] for mark in _PARAGRAPHS)
    first = next((side for side in heads if _fits(side, splitter, half)), "")
    rest = text[len(first) :]
    written = rest.rstrip()
    tails = (rest[written.rfind(mark) + len(mark) :] for mark in _PARAGRAPHS if mark in written)
    last = next((side for side in tails if _fits(side, splitter, half)), "")
    middle, size = rest[: len(rest) - len(last)], 4 * half
    while not last and size > 1 and splitter.count(rest[-size:]) > half:
        size //= 2
    return first, middle, last or rest[-size:]  # which remains part of the text to read


def _fits(side: str, splitter: Splitter, most_tokens: int) -> bool:
    return bool(side.strip()) and splitter.count(side) <= most_tokens


def _called(fields: Json, splitter: Splitter) -> int:
    """Return the tokens of the tools and their calls, as JSON."""
    tools = splitter.count(json_text(fields["tools"]).decode()) if fields.get("tools") else 0
    made = (message["tool_calls"] for message in objects_in(fields["messages"]) if message.get("tool_calls"))
    calls = sum(splitter.count(json_text(called).decode()) for called in made)
    return tools + calls


def _enough(found: list[Part], excess: int, cost: int, window: int) -> tuple[Part, ...]:
    """Select the largest parts until the rest fits."""
    chosen: list[Part] = []
    for part in sorted(found, key=lambda part: part.tokens, reverse=True):
        if excess <= 0 or part.tokens <= cost:
            break
        chosen.append(part)
        excess -= part.tokens - cost
    if excess > 0:
        raise InvalidRequest(
            f"The chat exceeds the model's window of {window} tokens by {excess}, even after its long user and tool "
            "messages are shortened.",
            param="messages",
            code=CONTEXT_LENGTH_EXCEEDED,
        )
    return tuple(sorted(chosen, key=lambda part: part.message_index))
