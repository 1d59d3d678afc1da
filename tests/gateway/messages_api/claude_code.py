"""The requests that Claude Code sends, by the shape that it has on the wire (version 2.1): the texts are made up."""

import json
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from tests.fakes.streaming_engine import MODEL

Object: TypeAlias = dict[str, Any]
PATH: Final = "/v1/messages?beta=true"
DEVICE: Final = "5f" * 32
ACCOUNT: Final = "0d9f3c1e-6d57-4a3c-9d0e-1f2a3b4c5d6e"
SESSIONS: Final = ("11111111-2222-4333-8444-555555555555", "66666666-7777-4888-9999-aaaaaaaaaaaa")
HEADERS: Final = {
    "Authorization": "Bearer unused-on-loopback",
    "anthropic-version": "2023-06-01",
    "anthropic-beta": (
        "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,"
        "prompt-caching-scope-2026-01-05,effort-2025-11-24"
    ),
    "anthropic-dangerous-direct-browser-access": "true",
    "User-Agent": "claude-cli/2.1.288 (external, cli)",
    "x-app": "cli",
    "X-Stainless-Lang": "js",
    "X-Stainless-Retry-Count": "0",
    "X-Stainless-Timeout": "600",
}
CACHED: Final = {"cache_control": {"type": "ephemeral"}}
REMINDER: Final = "<system-reminder>\nThe contents of NOTES.md follow.\nUse tabs.\n</system-reminder>"
BASH: Final = {
    "name": "Bash",
    "description": "Runs a command in a shell. " * 200,
    "input_schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command"},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": 600000},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
}
MCP_TOOL: Final = {
    "name": "mcp__a_server_with_a_long_name__" + "a_tool_" * 7,
    "description": "",
    "input_schema": {"type": "object"},
    **CACHED,
}


def user_as_json(session: str) -> str:
    """``metadata.user_id`` since version 2.1.78."""
    return json.dumps({"device_id": DEVICE, "account_uuid": ACCOUNT, "session_id": session})


def user_as_text(session: str) -> str:
    """``metadata.user_id`` before it."""
    return f"user_{DEVICE}_account_{ACCOUNT}_session_{session}"


def request(messages: Sequence[Object], *, user_id: str | None = None, **changes: object) -> Object:
    """A request of the main loop, by default in the first session."""
    system = [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.288.0a1; cc_entrypoint=cli; cch=00000;"},
        {"type": "text", "text": "You are a coding agent.", **CACHED},
        {"type": "text", "text": "Follow the rules of the repository.\n" * 900, **CACHED},
    ]
    return {
        "model": MODEL,
        "messages": list(messages),
        "system": system,
        "tools": [BASH, MCP_TOOL],
        "metadata": {"user_id": user_id or user_as_json(SESSIONS[0])},
        "max_tokens": 32000,
        "thinking": {"type": "adaptive", "display": "updates"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "high"},
        "stream": True,
        **changes,
    }


def prompt(text: str) -> Object:
    """The user's first message: the agent's reminder, then the user's own words."""
    return {
        "role": "user",
        "content": [{"type": "text", "text": REMINDER}, {"type": "text", "text": text, **CACHED}],
    }


def result(tool_use_id: str, text: str, *, is_error: bool = False) -> Object:
    """The result of a tool, with a reminder behind it."""
    found: Object = {"type": "tool_result", "tool_use_id": tool_use_id, "content": text, "is_error": is_error, **CACHED}
    return {"role": "user", "content": [found, {"type": "text", "text": REMINDER}]}
