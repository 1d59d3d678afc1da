"""Chat completions with memory: recall before the engine is called, a queued write after it has answered."""

from gateway.chat.answering import AnswerForm, AskedChat, answer_chat, asked_chat
from gateway.chat.chat import Chat, ChatDep
from gateway.chat.namespaces import USER_HEADER, namespace_named
from gateway.chat.oversized import prompt_tokens

__all__ = [
    "USER_HEADER",
    "AnswerForm",
    "AskedChat",
    "Chat",
    "ChatDep",
    "answer_chat",
    "asked_chat",
    "namespace_named",
    "prompt_tokens",
]
