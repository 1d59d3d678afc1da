"""Bundles the engine, the memory and the limits of a chat into one value."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from gateway.engine import Backend
from gateway.memory import Memory
from gateway.settings import GatewaySettings
from memloop_service.http import Admission


@dataclass(frozen=True, slots=True)
class Chat:
    """The parts that serve chats. ``long_context_*`` limit reads of parts that exceed the model's window.

    ``memory_for_users``: a chat that names a user has memory although it does not ask for it.
    """

    backend: Backend
    memory: Memory
    admission: Admission
    recall_timeout_s: float
    enqueue_timeout_s: float
    memory_for_users: bool
    max_document_chars: int
    long_context_max_calls: int
    long_context_deadline_s: float

    def limit_field(self, model_id: str) -> str:
        """Return the field in which the model's engine takes the most tokens of an answer. Raises NotFound."""
        return self.backend.models.named(model_id).dialect.limit_field


def open_chat(settings: GatewaySettings, *, backend: Backend, memory: Memory, admission: Admission) -> Chat:
    """Build the slice from the settings."""
    return Chat(
        backend=backend,
        memory=memory,
        admission=admission,
        recall_timeout_s=settings.recall_timeout_s,
        enqueue_timeout_s=settings.enqueue_timeout_s,
        memory_for_users=settings.memory_for_users,
        max_document_chars=settings.max_document_chars,
        long_context_max_calls=settings.long_context_max_calls,
        long_context_deadline_s=settings.long_context_deadline_s,
    )


async def chat_of(request: Request) -> Chat:
    """Return the slice from the application's state."""
    return cast(Chat, request.app.state.chat)


ChatDep: TypeAlias = Annotated[Chat, Depends(chat_of)]
