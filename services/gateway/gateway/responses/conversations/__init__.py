"""OpenAI's Conversations API: items that several responses continue, per tenant, erased with the user."""

from gateway.responses.conversations.records import (
    ConversationRecords,
    Limits,
    new_conversation_id,
    open_conversations,
)

__all__ = ["ConversationRecords", "Limits", "new_conversation_id", "open_conversations"]
