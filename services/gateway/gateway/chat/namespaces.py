"""Determines the memory namespace of a chat, and whether the chat asks for memory.

There is no shared default: without a user ID, memory is off.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from gateway.access import Principal, namespace_named
from memloop.wire.chat import NO_OPTIONS, ChatRequest, MemoryOptions
from memloop.wire.keys import Scope
from memloop.wire.memory import Namespace
from memloop.wire.task_texts import is_task
from memloop_service.headers import TASK_HEADERS, USER_HEADER

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
    mode = _mode(principal)
    return chat.model_copy(update={"memory": MemoryOptions(mode=mode)}), _LEFT_OUT[mode]


def is_own_task(chat: ChatRequest, headers: Mapping[str, str]) -> bool:
    """Return whether a front end asks for itself, for a title or the like: by a header, or by the chat's words."""
    named = (headers.get(name, "").strip() for name in TASK_HEADERS)
    return any(value and not value.startswith("{{") for value in named) or is_task(chat.messages)


def _mode(principal: Principal) -> Mode:
    if principal.allows("memory:read"):
        return "read"
    return "write" if principal.allows("memory:write") else "off"


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


def asks_for_memory(chat: ChatRequest, headers: Mapping[str, str], *, for_users: bool) -> bool:
    """Return whether the chat has memory: it has the field ``memory`` or the header ``X-Memory-User-Id``.

    Clients send ``user``, ``safety_identifier`` and ``metadata`` for other purposes too; with ``for_users``, the
    operator's setting, these suffice.
    """
    return for_users or chat.memory is not None or names_user(headers)
