"""Bundles the stored responses and their limits into one value."""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from prometheus_client import Counter

from gateway.metrics import Metrics
from gateway.responses.conversations.records import ConversationRecords, open_conversations
from gateway.responses.records import ResponseRecords
from gateway.settings import GatewaySettings
from memloop.wire.chat import Json
from memloop_service import of_app
from memloop_service.http import objects_in
from memloop_state.link import State
from memloop_state.room import Room

_STATE: Final = ("previous_response_id", "conversation", "memory", "background")
_USERS: Final = ("user", "safety_identifier", "metadata")


@dataclass(frozen=True, slots=True)
class Responses:
    """Stored responses. ``max_context_bytes`` bounds what a request may continue; ``lost`` counts by reason.

    ``pass_through``: the engines speak the Responses API themselves. ``memory_for_users``: a request that names a user
    has memory although it does not ask for it.
    """

    records: ResponseRecords
    conversations: ConversationRecords
    max_context_bytes: int
    pass_through: bool
    memory_for_users: bool
    lost: Counter

    def passes(self, fields: Json, *, names_user: bool) -> bool:
        """Return whether the engine answers the request itself: one without memory and without state.

        ``names_user``: its headers name a user.
        """
        if not self.pass_through or fields.get("store") is not False or names_user:
            return False
        tools = fields.get("tools")
        if any(tool.get("type") == "file_search" for tool in objects_in(tools)):
            return False
        names = (*_STATE, *_USERS) if self.memory_for_users else _STATE
        return all(fields.get(name) in (None, False) for name in names)


def open_records(settings: GatewaySettings, state: State) -> ResponseRecords:
    """Build the records from the settings."""
    return ResponseRecords(
        state,
        Room(state, share=settings.redis_full_share),
        keep_s=settings.response_keep_s,
        tenant_bytes=settings.tenant_response_bytes,
        chain=settings.response_chain,
    )


def open_responses(settings: GatewaySettings, state: State, metrics: Metrics) -> Responses:
    """Build the slice from the settings."""
    return Responses(
        open_records(settings, state),
        open_conversations(settings, state),
        max_context_bytes=settings.max_json_bytes,
        pass_through=settings.engine_responses,
        memory_for_users=settings.memory_for_users,
        lost=metrics.responses_not_kept,
    )


ResponsesDep: TypeAlias = Annotated[Responses, of_app("responses")]
