"""Determines the memory namespace of a chat, and whether the chat asks for memory.

There is no shared default: without a user ID, memory is off.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from gateway.access import Principal
from memloop.wire.chat import NO_OPTIONS, ChatRequest, MemoryOptions
from memloop.wire.errors import Unprocessable
from memloop.wire.keys import Scope
from memloop.wire.memory import Namespace
from memloop_service.headers import AGENT_HEADER, USER_HEADER

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


def permitted(chat: ChatRequest, namespace: Namespace | None, principal: Principal) -> tuple[ChatRequest, str | None]:
    """Return the chat with the memory mode that its key permits, and a note on omitted operations. Raises Forbidden.

    Reading an oversized chat needs ``long-read``, because it is always requested explicitly.
    """
    if chat.memory is not None:
        principal.require(*_NEEDS[chat.memory.mode], param="memory.mode")
        if chat.memory.long_context == "auto":
            principal.require("long-read", param="memory.long_context")
        return chat, None
    if namespace is None or principal.scopes.issuperset(_NEEDS["readwrite"]):
        return chat, None
    mode = _mode(principal)
    return chat.model_copy(update={"memory": MemoryOptions(mode=mode)}), _LEFT_OUT[mode]


def _mode(principal: Principal) -> Mode:
    if principal.allows("memory:read"):
        return "read"
    return "write" if principal.allows("memory:write") else "off"


_MAX_ID_CHARS = 256


def namespace_of(principal: Principal, chat: ChatRequest, headers: Mapping[str, str]) -> Namespace | None:
    """Return the namespace within the caller's tenant, or None when the request has no user id.

    The user is the first of: ``memory.user_id``, ``metadata.user_id``, the header ``X-Memory-User-Id``,
    ``safety_identifier``, ``user``. Agent and run come from ``memory``, else from ``metadata``, the agent else from
    ``X-Memory-Agent-Id``. An empty string counts as absent. Raises Unprocessable for an id of more than 256 characters.
    """
    others = (("safety_identifier", chat.safety_identifier), ("user", chat.user))
    return namespace_named(principal, chat.metadata or {}, headers, options=chat.memory or NO_OPTIONS, others=others)


def namespace_named(
    principal: Principal,
    metadata: Mapping[str, str],
    headers: Mapping[str, str],
    *,
    options: MemoryOptions = NO_OPTIONS,
    others: Sequence[tuple[str, str | None]] = (),
) -> Namespace | None:
    """Return the namespace that metadata and headers name, the same way; ``others`` are further names of the user."""
    user_id = _first(
        ("memory.user_id", options.user_id),
        ("metadata.user_id", metadata.get("user_id")),
        ("X-Memory-User-Id", _in_header(headers, USER_HEADER)),
        *others,
    )
    if user_id is None:
        return None
    agent_id = _first(
        ("memory.agent_id", options.agent_id),
        ("metadata.agent_id", metadata.get("agent_id")),
        ("X-Memory-Agent-Id", _in_header(headers, AGENT_HEADER)),
    )
    run_id = _first(("memory.run_id", options.run_id), ("metadata.run_id", metadata.get("run_id")))
    return Namespace(tenant=principal.tenant, user_id=user_id, agent_id=agent_id, run_id=run_id)


def names_user(headers: Mapping[str, str]) -> bool:
    """Return whether the headers name a user."""
    return bool(headers.get(USER_HEADER))


def asks_for_memory(chat: ChatRequest, headers: Mapping[str, str], *, for_users: bool) -> bool:
    """Return whether the chat has memory: it has the field ``memory`` or the header ``X-Memory-User-Id``.

    Clients send ``user``, ``safety_identifier`` and ``metadata`` for other purposes too; with ``for_users``, the
    operator's setting, these suffice.
    """
    return for_users or chat.memory is not None or names_user(headers)


def _in_header(headers: Mapping[str, str], name: str) -> str | None:
    """Return an id from a header, whose bytes are UTF-8 as in a body or, where they are not, Latin-1."""
    value = headers.get(name)
    if value is None or value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _first(*named: tuple[str, str | None]) -> str | None:
    for place, value in named:
        if value:
            return _short(place, value)
    return None


def _short(place: str, value: str) -> str:
    if len(value) > _MAX_ID_CHARS:
        raise Unprocessable(f"{place} is a memory id and may have at most {_MAX_ID_CHARS} characters.", param=place)
    return value
