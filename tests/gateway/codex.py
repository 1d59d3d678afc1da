"""The requests that Codex sends, by the shape that they have on the wire (version 0.169): the texts are made up."""

import json
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from tests.fakes.streaming_engine import MODEL

Object: TypeAlias = dict[str, Any]
PATH: Final = "/v1/responses"
INSTALLATION: Final = "4d22d863-160a-4484-8b9a-47aa7cce4b65"
SESSIONS: Final = ("01a20923-0a89-7920-9f07-917dc0b637f8", "01a20932-838c-7d40-af19-316bb41ffa75")
ENVIRONMENT: Final = "<environment_context>\n  <cwd>/srv/app</cwd>\n  <shell>bash</shell>\n</environment_context>"
AGENTS_MD: Final = "# AGENTS.md instructions for /srv/app\n\n<INSTRUCTIONS>\nUse tabs.\n\n</INSTRUCTIONS>"
PATCH_GRAMMAR: Final = 'start: begin_patch hunk+ end_patch\nbegin_patch: "*** Begin Patch" LF\n%import common.LF\n'
EXEC: Final = {
    "type": "function",
    "name": "exec_command",
    "description": "Runs a command. " * 100,
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"cmd": {"type": "string"}, "sandbox_permissions": {"type": "string", "enum": ["use_default"]}},
        "required": ["cmd"],
        "additionalProperties": False,
    },
}
TOOLS: Final = [
    EXEC,
    *({**EXEC, "name": f"tool_{place}"} for place in range(40)),
    {
        "type": "custom",
        "name": "apply_patch",
        "description": "Edits files.",
        "format": {"type": "grammar", "syntax": "lark", "definition": PATCH_GRAMMAR},
    },
    {
        "type": "namespace",
        "name": "multi_agent_v1",
        "description": "Tools for sub-agents.",
        "tools": [{**EXEC, "name": "spawn_agent"}, {**EXEC, "name": "close_agent"}],
    },
    {
        "type": "tool_search",
        "execution": "client",
        "description": "Searches deferred tools.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
    {"type": "web_search", "external_web_access": False, "search_content_types": ["text", "image"]},
]


def headers(session: str) -> dict[str, str]:
    """The headers of a request."""
    metadata = {"installation_id": INSTALLATION, "session_id": session, "request_kind": "turn", "sandbox": "seccomp"}
    return {
        "Authorization": "Bearer unused-on-loopback",
        "Accept": "text/event-stream",
        "originator": "codex_exec",
        "User-Agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown (codex_exec; 0.169.0)",
        "session-id": session,
        "thread-id": session,
        "x-client-request-id": session,
        "x-codex-beta-features": "remote_compaction_v2",
        "x-codex-window-id": f"{session}:0",
        "x-codex-turn-metadata": json.dumps(metadata),
    }


def said(role: str, *texts: str) -> Object:
    """A message with the id that Codex gives it."""
    parts = [{"type": "input_text", "text": text} for text in texts]
    return {
        "type": "message",
        "id": f"msg_{len(texts[0]):08d}-7b49-7061-a5a5-81adc0ea53b5",
        "role": role,
        "content": parts,
    }


def turn(prompt: str) -> list[Object]:
    """The beginning of a session: instructions, surroundings, then the user's own words."""
    return [
        said("developer", "You are a coding agent. " * 900),
        said("developer", "<skills_instructions>\n## Skills\n</skills_instructions>"),
        said("user", AGENTS_MD, ENVIRONMENT),
        said("user", prompt),
    ]


def request(items: Sequence[Object], *, session: str, **changes: object) -> Object:
    """A request of the main loop."""
    return {
        "model": MODEL,
        "stream": True,
        "input": list(items),
        "tools": TOOLS,
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "text": {"verbosity": "low"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": session,
        "client_metadata": {
            "x-codex-installation-id": INSTALLATION,
            "session_id": session,
            "thread_id": session,
            "x-codex-window-id": f"{session}:0",
        },
        **changes,
    }


def sent_back(item: Object) -> Object:
    """An item of an answer as the next request has it."""
    if item["type"] == "reasoning":
        kept = {name: item[name] for name in ("type", "id", "summary", "content")}
        return {**kept, "encrypted_content": None}
    return item
