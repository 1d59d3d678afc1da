"""Chat completions with memory: recall before the engine is called, a queued write after it has answered."""

from gateway.chat.answering import ENGINE_PATH, AnswerForm, AskedChat, answer_chat, asked_chat, engine_body
from gateway.chat.chat import Chat, ChatDep, open_chat
from gateway.chat.memory import begin_turn
from gateway.chat.namespaces import USER_HEADER, namespace_named
from gateway.chat.oversized import prompt_tokens
from gateway.chat.pieces import TextEvents

__all__ = [
    "ENGINE_PATH",
    "USER_HEADER",
    "AnswerForm",
    "AskedChat",
    "Chat",
    "ChatDep",
    "TextEvents",
    "answer_chat",
    "asked_chat",
    "begin_turn",
    "engine_body",
    "namespace_named",
    "open_chat",
    "prompt_tokens",
]
