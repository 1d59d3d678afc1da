"""The slice in one value: the engine, the memory, and a chat's limits."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from gateway.engine import Backend
from gateway.http import Admission
from gateway.memory.memory import Memory
from gateway.settings import GatewaySettings


@dataclass(frozen=True, slots=True)
class Chat:
    """Chats with memory. ``long_context_*`` bound the reading of parts that do not fit the model's window."""

    backend: Backend
    memory: Memory
    admission: Admission
    recall_timeout_s: float
    enqueue_timeout_s: float
    max_document_chars: int
    long_context_max_calls: int
    long_context_deadline_s: float


def open_chat(settings: GatewaySettings, *, backend: Backend, memory: Memory, admission: Admission) -> Chat:
    """Builds the slice from the settings."""
    return Chat(
        backend=backend,
        memory=memory,
        admission=admission,
        recall_timeout_s=settings.recall_timeout_s,
        enqueue_timeout_s=settings.enqueue_timeout_s,
        max_document_chars=settings.max_document_chars,
        long_context_max_calls=settings.long_context_max_calls,
        long_context_deadline_s=settings.long_context_deadline_s,
    )


async def chat_of(request: Request) -> Chat:
    """Returns the slice from the application's state."""
    return cast(Chat, request.app.state.chat)


ChatDep: TypeAlias = Annotated[Chat, Depends(chat_of)]
