"""Converts replies to messages of a conversation: the one tool call that the loop's parser accepts, or the text."""

from __future__ import annotations

import json

from memloop.loops.memreader import FoundCall, find_call
from memloop.loops.rendering import listen
from memloop.ports import Completion
from memloop.wire.chat import ChatMessage, FunctionCall, ToolCall


def reply_message(completion: Completion, *, with_tools: bool) -> ChatMessage:
    """Build the assistant's message. A reply without its expected tool call keeps its text."""
    spoken = listen(completion)
    call = find_call(completion) if with_tools else None
    calls = None
    if isinstance(call, FoundCall):
        function = FunctionCall(name=call.name, arguments=json.dumps(call.arguments, ensure_ascii=False))
        calls = (ToolCall(id="call_0", function=function),)
    fields = {
        "role": "assistant",
        "content": "" if calls else spoken.text,
        "tool_calls": calls,
        "reasoning_content": spoken.reasoning or None,
    }
    return ChatMessage.model_validate(fields)
