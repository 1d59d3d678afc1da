"""The chat format of the tiny checkpoint: its Jinja template, and the same rendering in Python for training speed.

It is ChatML with Qwen3's thinking convention. Tools are named with their required arguments only, which keeps prompts
short. A test asserts that both renderings agree.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from memloop.wire.chat import ChatMessage, Json, ToolCall

NO_THINKING = "<think>\n\n</think>\n\n"

TEMPLATE = """\
{%- macro call(tool_call) -%}
{%- set function = tool_call.function if tool_call.function is defined else tool_call -%}
{{- '<tool_call>\\n{"name": ' + function.name | tojson + ', "arguments": ' -}}
{{- function.arguments if function.arguments is string else function.arguments | tojson -}}
{{- '}\\n</tool_call>' -}}
{%- endmacro -%}
{%- if tools -%}
{{- '<|im_start|>system\\n' -}}
{%- if messages[0].role == 'system' -%}{{- messages[0].content + '\\n\\n' -}}{%- endif -%}
{{- 'Tools: ' -}}
{%- for tool in tools -%}
{{- tool.function.name + '(' + (tool.function.parameters.required or []) | join(', ') + ')' -}}
{{- '' if loop.last else '; ' -}}
{%- endfor -%}
{{- '.<|im_end|>\\n' -}}
{%- elif messages[0].role == 'system' -%}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'system' and loop.first -%}
{%- elif message.role == 'tool' -%}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' -}}
{%- elif message.role == 'assistant' -%}
{{- '<|im_start|>assistant\\n' -}}
{{- (message.content or '').split('</think>')[-1].lstrip('\\n') -}}
{%- for tool_call in message.tool_calls or [] -%}{{- call(tool_call) -}}{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- else -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- if enable_thinking is defined and enable_thinking is false -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}
{%- endif -%}
"""


def tool_line(tools: Sequence[Json]) -> str:
    """Format the tools as the template does."""
    return "Tools: " + "; ".join(_signature(tool) for tool in tools) + "."


def _signature(tool: Json) -> str:
    function = cast(Json, tool["function"])
    parameters = cast(Json, function["parameters"])
    required = cast(list[str], parameters.get("required") or [])
    return f"{function['name']}({', '.join(required)})"


def render_prompt(messages: Sequence[ChatMessage], *, tools: Sequence[Json] = (), thinking: bool) -> str:
    """Return the text of a prompt, up to the start of the reply."""
    parts: list[str] = []
    rest = list(messages)
    system = rest.pop(0).text() if rest[0].role == "system" else None
    if tools:
        lead = f"{system}\n\n" if system is not None else ""
        parts.append(f"<|im_start|>system\n{lead}{tool_line(tools)}<|im_end|>\n")
    elif system is not None:
        parts.append(f"<|im_start|>system\n{system}<|im_end|>\n")
    parts.extend(_message(message) for message in rest)
    parts.append("<|im_start|>assistant\n" + ("" if thinking else NO_THINKING))
    return "".join(parts)


def _message(message: ChatMessage) -> str:
    if message.role == "tool":
        return f"<|im_start|>user\n<tool_response>\n{message.text()}\n</tool_response><|im_end|>\n"
    if message.role == "assistant":
        calls = "".join(tool_call_text(call) for call in message.tool_calls or ())
        return f"<|im_start|>assistant\n{message.text()}{calls}<|im_end|>\n"
    return f"<|im_start|>{message.role}\n{message.text()}<|im_end|>\n"


def tool_call_text(call: ToolCall) -> str:
    """Format a call in the hermes format."""
    arguments = json.dumps(json.loads(call.function.arguments), ensure_ascii=False)
    return f'<tool_call>\n{{"name": {json.dumps(call.function.name)}, "arguments": {arguments}}}\n</tool_call>'
