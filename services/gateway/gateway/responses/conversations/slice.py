"""Opens the conversations, and finds them for a route."""

from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from gateway.responses.conversations.records import ConversationRecords, Limits
from gateway.settings import GatewaySettings
from memloop_state.link import State
from memloop_state.room import room_of


def open_conversations(settings: GatewaySettings, state: State) -> ConversationRecords:
    """Build the records from the settings."""
    limits = Limits(
        keep_s=settings.response_keep_s,
        tenant_bytes=settings.tenant_conversation_bytes,
        conversations=settings.tenant_conversations,
        items=settings.conversation_items,
        bytes=settings.max_json_bytes,
    )
    return ConversationRecords(state, room_of(state, settings), limits)


async def conversations_of(request: Request) -> ConversationRecords:
    """Return the records from the application's state."""
    return cast(ConversationRecords, request.app.state.conversations)


ConversationsDep: TypeAlias = Annotated[ConversationRecords, Depends(conversations_of)]
