"""Recognises the texts that coding agents put into the user's messages: they are not the user's words.

Claude Code wraps them in ``system-reminder``. Codex sends messages of its own with the surroundings, the repository's
instructions and the state of a turn, each in a tag.
"""

from typing import Final

_TAGS: Final = (
    "system-reminder",
    "environment_context",
    "user_instructions",
    "INSTRUCTIONS",
    "skill",
    "turn_aborted",
    "subagent_notification",
)
_HEADING: Final = "# AGENTS.md instructions"


def is_of_agent(text: str) -> bool:
    """Return whether a coding agent wrote the text: it is one tag, or the instructions of a repository."""
    stripped = text.strip()
    if not stripped.startswith(("<", "#")):
        return False
    if stripped.startswith(_HEADING):
        return True
    return any(stripped.startswith(f"<{tag}>") and stripped.endswith(f"</{tag}>") for tag in _TAGS)
