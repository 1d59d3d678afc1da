"""The roles that a model's chat template takes, and a chat in those roles.

Templates differ. Those of Gemma, Mistral and Llama 2 demand that user and assistant take turns, many know no system
message, no ``developer`` and no tools, and a template that does not know a role either raises an error or leaves the
message out without a word. ``described`` finds out by rendering, ``stricter`` by an engine's refusals, and ``fitted``
writes a chat so that nothing of it is lost. Source: the ``chat_template`` of public models' tokenizers.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, cast

from pydantic import JsonValue

from memloop.wire.base import object_in, objects_in
from memloop.wire.chat import Json

Render: TypeAlias = Callable[[list[Json], list[Json] | None], str]
"""Renders messages, and the definitions of tools, by a template. Raises any exception for what the template refuses."""

_MISSING: Final = {"user": "(The conversation begins with the assistant.)", "assistant": "(No answer.)"}
_TURNS: Final = frozenset(_MISSING)
_REFUSES_ROLES: Final = re.compile(
    r"\broles?\b(?![\"']\s*:)|alternat|chat.?template|jinja|\bsystem (message|prompt|instruction)|\bdeveloper\b"
    r"|does not support tools|first message|last message",
    re.IGNORECASE,
)
ROLES_REFUSED: Final = frozenset({400, 422, 500})
"""vLLM and Ollama refuse a chat with 400, others with 422; llama.cpp answers 500 when its template raises."""


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """Which roles a chat template takes. The default takes all, in any order.

    ``alternates``: user and assistant take turns, the user first, after at most one system message; a call of tools and
    its results do not count. ``tools``: it shows calls and results; a request's definitions of tools too.
    """

    system: bool = True
    developer: bool = True
    tools: bool = True
    alternates: bool = False

    @property
    def takes_all(self) -> bool:
        """Whether every chat suits it as it is."""
        return self == ANY_ROLES


ANY_ROLES: Final = ChatTemplate()
_ALTERNATING = ChatTemplate(developer=False, alternates=True)
_LADDER: Final = (
    _ALTERNATING,
    replace(_ALTERNATING, system=False),
    replace(_ALTERNATING, tools=False),
    replace(_ALTERNATING, system=False, tools=False),
)
"""Templates from those that ask for little to the one that takes nothing but user and assistant in turns."""


def described(render: Render) -> ChatTemplate:
    """Return which roles a template takes, found by rendering: a role whose text is missing is not taken."""
    user, later, answer = _message("user", "alpha"), _message("user", "gamma"), _message("assistant", "beta")
    call = {"id": "call00000", "type": "function", "function": {"name": "look_up", "arguments": {"word": "delta"}}}
    tool: Json = {"type": "function", "function": {"name": "look_up", "description": "Looks up.", "parameters": {}}}
    called: Json = {"role": "assistant", "content": "", "tool_calls": [cast(JsonValue, call)]}
    result: Json = {"role": "tool", "tool_call_id": "call00000", "name": "look_up", "content": "zeta"}

    def shows(words: str, messages: list[Json], tools: list[Json] | None = None) -> bool:
        try:
            text = render(messages, tools)
        except Exception:  # noqa: BLE001  a template raises what it likes
            return False
        return all(word in text for word in words.split())

    return ChatTemplate(
        system=shows("eta alpha", [_message("system", "eta"), user]),
        developer=shows("theta alpha", [_message("developer", "theta"), user]),
        tools=shows("look_up alpha", [user], [tool]) and shows("delta zeta", [user, called, result], [tool]),
        alternates=not (
            shows("alpha gamma", [user, later])
            and shows("beta alpha", [answer, user])
            and shows(
                "eta alpha beta theta gamma",
                [_message("system", "eta"), user, answer, _message("system", "theta"), later],
            )
        ),
    )


def refuses_roles(*, status: int | None, message: str) -> bool:
    """Return whether an engine's error may be its template's, about the roles of a chat."""
    return status in ROLES_REFUSED and _REFUSES_ROLES.search(message) is not None


def stricter(known: ChatTemplate, messages: Sequence[Json]) -> Iterator[ChatTemplate]:
    """Yield the templates to try after a refusal, the mildest first; each changes the chat in a new way."""
    seen = [list(messages), fitted(messages, known)]
    for step in _LADDER:
        template = ChatTemplate(
            system=known.system and step.system, developer=False, tools=known.tools and step.tools, alternates=True
        )
        chat = fitted(messages, template)
        if chat not in seen:
            seen.append(chat)
            yield template


def teaches(template: ChatTemplate, known: ChatTemplate, messages: Sequence[Json]) -> bool:
    """Return whether an answer to the chat in a stricter template's roles tells of the model's template.

    A call without its result, or a result without its call, is refused by any template, and taken as text.
    """
    return template.tools == known.tools or _pairs_calls(messages)


def _pairs_calls(messages: Sequence[Json]) -> bool:
    """Return whether each call of a tool has its result, and each result its call.

    A result without an id may follow a call that the model wrote as text.
    """
    waiting, written = list[JsonValue](), False
    for message in messages:
        if message.get("role") != "tool":
            if waiting:
                return False
            waiting = [call.get("id") for call in objects_in(message.get("tool_calls"))]
            written = message.get("role") == "assistant" and not waiting
        elif (call_id := message.get("tool_call_id")) in waiting:
            waiting.remove(call_id)
        elif call_id is not None or not written:
            return False
    return not waiting


def fitted(messages: Sequence[Json], template: ChatTemplate) -> list[Json]:
    """Return the chat in roles that the template takes; a chat that suits as it is comes out equal.

    A system message that is not taken becomes the beginning of the next user message, a call of a tool and its result
    become text in the tags that most models were trained on, neighbours of one role become one message.
    """
    chat = _in_known_roles(messages, template)
    return list(_in_turns(chat) if template.alternates else chat)


def _in_known_roles(messages: Sequence[Json], template: ChatTemplate) -> Iterator[Json]:
    """Yield the messages with roles that the template has."""
    leading = True
    for message in messages:
        role = message.get("role")
        if role == "developer" and not template.developer:
            role = "system"
        if role == "system" and not (template.system and (leading or not template.alternates)):
            role = "user"
        leading = leading and role == "system"
        if template.tools:
            yield message if role == message.get("role") else {**message, "role": role}
        elif role == "tool":
            yield _message("user", _tagged("tool_response", _text(message.get("content"))))
        elif message.get("tool_calls"):
            kept = {name: value for name, value in message.items() if name != "tool_calls"}
            yield {**kept, "content": _joined(message.get("content"), _calls(message["tool_calls"]))}
        else:
            yield message if role == message.get("role") else {**message, "role": role}


def _in_turns(messages: Iterable[Json]) -> Iterator[Json]:
    """Yield the messages with neighbours of one role as one; a turn that is missing between them gets a few words."""
    merged: list[Json] = []
    for message in messages:
        before = merged[-1] if merged else {}
        if before.get("role") == message.get("role") != "tool" and not before.get("tool_calls"):
            merged[-1] = {**before, **message, "content": _joined(before.get("content"), message.get("content"))}
        else:
            merged.append(message)
    expected = "user"
    for message in merged:
        role = message.get("role")
        if role in _TURNS and role != expected:
            yield _message(expected, _MISSING[expected])
            expected = role
        yield message
        if role in _TURNS and not message.get("tool_calls"):
            expected = "assistant" if role == "user" else "user"


def _joined(first: JsonValue, second: JsonValue) -> JsonValue:
    """Return two contents as one: text, or parts where one of them has parts."""
    if isinstance(first, list) or isinstance(second, list):
        return [*_parts(first), *_parts(second)]
    return "\n\n".join(text for text in (_text(first), _text(second)) if text)


def _parts(content: JsonValue) -> list[JsonValue]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else []


def _text(content: JsonValue) -> str:
    """Return a content's text, that of its text parts joined by line breaks."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in objects_in(content)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _calls(calls: JsonValue) -> str:
    """Return calls of tools as text, one tag each, the arguments as JSON."""
    lines: list[str] = []
    for call in objects_in(calls):
        if function := object_in(call.get("function")):
            arguments = function.get("arguments")
            shown = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            name = json.dumps(function.get("name"), ensure_ascii=False)
            lines.append(_tagged("tool_call", f'{{"name": {name}, "arguments": {shown or "{}"}}}'))
    return "\n".join(lines)


def _tagged(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>"


def _message(role: str, text: str) -> Json:
    return {"role": role, "content": text}
