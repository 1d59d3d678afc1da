"""Bodies of the routes of memory webhooks."""

from typing import Literal

from pydantic import Field

from gateway.changes.hooks import Hook
from memloop.wire.base import Wire
from memloop.wire.changes import CHANGE_TYPES, ChangeType
from memloop.wire.names import Name


class NewHook(Wire):
    """``POST /v1/admin/memory-webhooks``: the address, the types of changes, and one user or all."""

    url: str = Field(min_length=1, max_length=2048)
    events: tuple[ChangeType, ...] = Field(default=CHANGE_TYPES, min_length=1, max_length=16)
    user_id: Name | None = None


class HookPage(Wire):
    """A tenant's subscriptions."""

    object: Literal["list"] = "list"
    data: tuple[Hook, ...]
    has_more: Literal[False] = False


class HookDeleted(Wire):
    """``DELETE /v1/admin/memory-webhooks/{hook_id}``."""

    id: str
    object: Literal["memory_webhook"] = "memory_webhook"
    deleted: bool = True
