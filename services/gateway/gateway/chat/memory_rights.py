"""Limits a chat's memory use to the scopes of its key.

A chat that requests memory explicitly (``memory`` in its body) without the scopes is rejected. If it only names a user
(by the header, or by ``user`` or ``metadata`` where the operator's setting makes these suffice), it is answered with
the permitted operations, and the answer lists the omitted ones.
"""

from typing import Final, Literal, TypeAlias

from gateway.access import Principal
from memloop.wire.chat import ChatRequest, MemoryOptions
from memloop.wire.keys import Scope
from memloop.wire.memory import Namespace

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
