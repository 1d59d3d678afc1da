"""What serves a chat, and what its request asks for: the model, the user, and whether it has memory.

There is no shared default of a user: without a user ID, memory is off.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from fastapi import Request

from gateway.access import Principal, namespace_named
from gateway.engine import Backend, LoopModel
from gateway.memory import Memory
from gateway.settings import GatewaySettings
from memloop.wire.chat import NO_OPTIONS, ChatRequest, Json, MemoryOptions, SentMessage, is_of_agent, is_task
from memloop.wire.errors import InvalidRequest
from memloop.wire.fields import NO_MEDIA_URL, is_media_url
from memloop.wire.keys import Scope
from memloop.wire.memory import Namespace
from memloop_service import of_app
from memloop_service.http import Admission, JsonBody, objects_in
from memloop_service.incoming import TASK_HEADERS, USER_HEADER


@dataclass(frozen=True, slots=True)
class Chat:
    """The parts that serve chats."""

    settings: GatewaySettings
    backend: Backend
    memory: Memory
    admission: Admission

    def limit_field(self, model_id: str) -> str:
        """Return the field in which the model's engine takes the most tokens of an answer. Raises NotFound."""
        return self.backend.models.named(model_id).dialect.limit_field


ChatDep: TypeAlias = Annotated[Chat, of_app("chat")]


Mode: TypeAlias = Literal["readwrite", "read", "write", "off"]
_NEEDS: Final[dict[Mode, tuple[Scope, ...]]] = {
    "readwrite": ("memory:read", "memory:write"),
    "read": ("memory:read",),
    "write": ("memory:write",),
    "off": (),
}
_LEFT_OUT: Final[dict[Mode, str]] = {
    "read": "This key may not write memories; this turn will not be remembered.",
    "write": "This key may not read memories; none were recalled.",
    "off": "This key may neither read nor write memories; memory is off.",
}

_OWN_TASK: Final = "This chat is a task of a chat front end, such as a title; memory is off."


def permitted(
    chat: ChatRequest, namespace: Namespace | None, principal: Principal, *, own_task: bool = False
) -> tuple[ChatRequest, str | None]:
    """Return the chat with the memory mode that its key permits, and a note on omitted operations. Raises Forbidden.

    A front end's own task gets no memory, even where it asks for it. Reading an oversized chat needs ``long-read``,
    because it is always requested explicitly.
    """
    if chat.memory is not None:
        principal.require(*_NEEDS[chat.memory.mode], param="memory.mode")
        if chat.memory.long_context == "auto":
            principal.require("long-read", param="memory.long_context")
        if not own_task or chat.memory.mode == "off":
            return chat, None
        return chat.model_copy(update={"memory": chat.memory.model_copy(update={"mode": "off"})}), _OWN_TASK
    if namespace is None or principal.scopes.issuperset(_NEEDS["readwrite"]):
        return chat, None
    mode: Mode = "write" if principal.allows("memory:write") else "off"
    if principal.allows("memory:read"):
        mode = "read"
    return chat.model_copy(update={"memory": MemoryOptions(mode=mode)}), _LEFT_OUT[mode]


def is_own_task(chat: ChatRequest, headers: Mapping[str, str]) -> bool:
    """Return whether a front end asks for itself, for a title or the like: by a header, or by the chat's words."""
    named = (headers.get(name, "").strip() for name in TASK_HEADERS)
    return any(value and not value.startswith("{{") for value in named) or is_task(chat.messages)


def namespace_of(principal: Principal, chat: ChatRequest, headers: Mapping[str, str]) -> Namespace | None:
    """Return the namespace within the caller's tenant, or None when the request has no user id.

    The user is the first of: ``memory.user_id``, ``metadata.user_id``, the header ``X-Memory-User-Id``,
    ``safety_identifier``, ``user``. Agent and run come from ``memory``, else from ``metadata``, the agent else from
    ``X-Memory-Agent-Id``. An empty string counts as absent. Raises Unprocessable for an id that is no name
    (``memloop.wire.fields``).
    """
    others = (("safety_identifier", chat.safety_identifier), ("user", chat.user))
    return namespace_named(principal, chat.metadata or {}, headers, options=chat.memory or NO_OPTIONS, others=others)


def names_user(headers: Mapping[str, str]) -> bool:
    """Return whether the headers name a user."""
    return bool(headers.get(USER_HEADER))


FROM_TOOL: Final = "From the output of the tool call"
"""How the text begins that introduces a tool's pictures: a tool's own message holds text alone."""


def refuse_local_media(fields: Json) -> None:
    """Raise InvalidRequest for a part of a message whose ``image_url`` or other ``…_url`` is neither web nor data."""
    for place, message in enumerate(objects_in(fields.get("messages"))):
        for number, part in enumerate(objects_in(message.get("content"))):
            for name, value in part.items():
                # alone or as ``{"url": …}``; what names no URL is the engine's to refuse
                url = value.get("url") if isinstance(value, dict) else value
                if name.endswith("_url") and isinstance(url, str) and not is_media_url(url):
                    param = f"messages[{place}].content[{number}].{name}"
                    raise InvalidRequest(NO_MEDIA_URL, param=param, code="invalid_url")


@dataclass(frozen=True, slots=True)
class AskedChat:
    """A chat to answer: its body, the fields of it that the gateway reads, the model and who asks."""

    body: JsonBody
    fields: ChatRequest
    model: LoopModel
    principal: Principal
    named: Namespace | None
    """The user whom the request names; None without one."""
    namespace: Namespace | None
    """The same, if the chat has memory."""
    left_out: str | None
    """The memory operations that the key's scopes exclude."""


def asked_chat(request: Request, chat: Chat, principal: Principal, body: JsonBody, fields: ChatRequest) -> AskedChat:
    """Determine model, user and rights of a chat.

    Raises InvalidRequest, NotFound, Unavailable, Forbidden and Unprocessable.
    """
    refuse_local_media(body.fields)
    named = namespace_of(principal, fields, request.headers)
    model = chat.backend.models.serving(fields.model, key=named.lane() if named is not None else None)
    # Clients name users for other purposes too: with the operator's setting that suffices
    asks = fields.memory is not None or names_user(request.headers)
    remembers = asks or chat.settings.memory_for_users
    own = remembers and is_own_task(fields, request.headers)
    namespace = named if remembers and not own else None
    fields, left_out = permitted(fields, namespace, principal, own_task=own)
    return AskedChat(body, fields, model, principal, named, namespace, left_out)


def has_memory(chat: ChatRequest, namespace: Namespace | None, left_out: str | None) -> bool:
    """Return whether the answer reports on memory: it is on, or the key excludes operations (``left_out``)."""
    if left_out is not None:
        return True
    return (chat.memory or NO_OPTIONS).mode != "off" and (namespace is not None or chat.memory is not None)


def translated_chat(messages: Sequence[Json], memory: MemoryOptions | None, **others: object) -> ChatRequest:
    """Return what the gateway reads of another API's request, translated to these messages.

    Memory gets the user's own words alone, unless oversized messages are read: then each has to be the engine's.
    """
    reads = (memory or NO_OPTIONS).long_context == "auto"
    fields = {"messages": messages if reads else [_heard(message) for message in messages], "memory": memory}
    return ChatRequest.model_validate({**fields, **others})


def _heard(message: Json) -> Json:
    """Return a user's message without what agents and tools wrote; one that they wrote as a whole is not the user's."""
    if message.get("role") != "user":
        return message
    content = message.get("content")
    parts = [content] if isinstance(content, str) else [part.get("text") for part in objects_in(content)]
    texts = [text for text in parts if isinstance(text, str)]
    own = [text for text in texts if not is_of_agent(text) and not text.startswith(FROM_TOOL)]
    return message if len(own) == len(texts) else {"role": "user" if own else "system", "content": "\n".join(own)}


def last_user_index(messages: Sequence[SentMessage]) -> int | None:
    """Return the index of the last user message, or None."""
    places = (place for place in reversed(range(len(messages))) if messages[place].role == "user")
    return next(places, None)
