"""Bundles the stored responses and their limits into one value."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from prometheus_client import Counter

from gateway.responses.conversations.records import ConversationRecords
from gateway.responses.records import ResponseRecords
from gateway.settings import GatewaySettings
from memloop.wire.chat import Json
from memloop_service import of_app
from memloop_service.http import objects_in

_STATE: Final = ("previous_response_id", "conversation", "memory", "background")
_USERS: Final = ("user", "safety_identifier", "metadata")


@dataclass(frozen=True, slots=True)
class Responses:
    """Stored responses; ``lost`` counts by reason."""

    settings: GatewaySettings
    records: ResponseRecords
    conversations: ConversationRecords
    lost: Counter

    def passes(self, fields: Json, *, names_user: bool) -> bool:
        """Return whether the engine answers the request itself: one without memory and without state.

        ``names_user``: its headers name a user.
        """
        if not self.settings.engine_responses or fields.get("store") is not False or names_user:
            return False
        tools = fields.get("tools")
        if any(tool.get("type") == "file_search" for tool in objects_in(tools)):
            return False
        names = (*_STATE, *_USERS) if self.settings.memory_for_users else _STATE
        return all(fields.get(name) in (None, False) for name in names)


ResponsesDep: TypeAlias = Annotated[Responses, of_app("responses")]
