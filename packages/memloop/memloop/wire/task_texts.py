"""Recognises the tasks of chat front ends: titles, tags, follow-ups and the like, which no user wrote.

A front end sends them to the model of the chat, as chats with the same user. Each has a fixed beginning. Those of Open
WebUI also quote the chat, because a user's own text may begin like them.
"""

import re
from collections.abc import Sequence
from typing import Final

from memloop.wire.chat import SentMessage

_OPEN_WEBUI: Final = "### Task:"
_QUOTES_CHAT: Final = re.compile(r"^#+ (?:Chat History|Context):\s*<chat_history>", re.MULTILINE)
_BEGINNINGS: Final = (
    # Open WebUI: an emoji for a message, one answer of several models', the choice of tools
    "Your task is to reflect the speaker's likely facial expression through a fitting emoji.",
    "You have been provided with a set of responses from various models to the latest user query:",
    "Available Tools: ",
    # LibreChat: titles, with and without structured output
    "Provide a concise, 5-word-or-less title for the conversation",
    "Please generate a concise, 5-word-or-less title for the conversation",
    "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title",
    # LobeChat: titles and summaries of a long chat
    "You are a professional conversation summarizer. Generate a concise title",
    "You are an assistant skilled at conversations. You need to summarize the user's conversation into a title",
    "You're an assistant who's good at extracting key takeaways from conversations and summarizing them.",
    # NextChat: the same, as the last message of the chat
    "Please generate a four to five word title summarizing our conversation",
    "Summarize the discussion briefly in 200 words or less to use as a prompt for future context.",
)


def is_task(messages: Sequence[SentMessage]) -> bool:
    """Return whether a front end asks for itself: by its system message or by the chat's last message."""
    said = [message for message in messages if message.role in ("system", "developer")]
    return any(_is_task(message.text().lstrip()) for message in (*said, messages[-1]))


def _is_task(text: str) -> bool:
    if text.startswith(_OPEN_WEBUI):
        return _QUOTES_CHAT.search(text) is not None
    return text.startswith(_BEGINNINGS)
