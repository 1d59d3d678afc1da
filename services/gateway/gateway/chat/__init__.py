"""Chat completions with memory: recall before the engine is called, a queued write after it has answered."""

from gateway.chat.answering import AnswerForm as AnswerForm
from gateway.chat.answering import answer_chat as answer_chat
from gateway.chat.answering import engine_body as engine_body
from gateway.chat.answering import reply_text as reply_text
from gateway.chat.chat import FROM_TOOL as FROM_TOOL
from gateway.chat.chat import AskedChat as AskedChat
from gateway.chat.chat import Chat as Chat
from gateway.chat.chat import ChatDep as ChatDep
from gateway.chat.chat import asked_chat as asked_chat
from gateway.chat.chat import has_memory as has_memory
from gateway.chat.chat import names_user as names_user
from gateway.chat.chat import translated_chat as translated_chat
from gateway.chat.memory import begin_turn as begin_turn
from gateway.chat.oversized import prompt_tokens as prompt_tokens
from gateway.chat.relay import ChatSink as ChatSink
