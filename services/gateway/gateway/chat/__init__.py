"""Chat completions with memory: recall before the engine is called, a queued write after it has answered."""

from gateway.chat.answering import AnswerForm, answer_chat, engine_body, reply_text
from gateway.chat.chat import AskedChat, Chat, ChatDep, asked_chat, has_memory, names_user, of_user, open_chat
from gateway.chat.memory import begin_turn
from gateway.chat.oversized import prompt_tokens

__all__ = [
    "AnswerForm",
    "AskedChat",
    "Chat",
    "ChatDep",
    "answer_chat",
    "asked_chat",
    "begin_turn",
    "engine_body",
    "has_memory",
    "names_user",
    "of_user",
    "open_chat",
    "prompt_tokens",
    "reply_text",
]
