"""Turns and memories as lines: one place, for the memory writer, its tool results and chat recall."""

import re
from collections.abc import Iterable, Sequence

from memloop.ports import Recalled
from memloop.profiles import neutralise
from memloop.wire.memory import Source

_ROLE_MARK = re.compile(r"^(?=\[[^\]\n]*\]:)", re.MULTILINE)
_NOT_A_ROLE = re.compile(r"[^\w.-]+")


def conversation_lines(turns: Iterable[Source]) -> str:
    """``[role]: text`` for each turn. A line inside a text that looks like a turn is indented: nobody forges one."""
    return "\n".join(f"[{_role(turn.role)}]: {_unforged(turn.content)}" for turn in turns)


def memory_lines(memories: Sequence[Recalled], *, nothing: str) -> str:
    """``1. text (2026-01-31)`` for each memory, one line each, tags made harmless; ``nothing`` when there is none."""
    lines = [
        f"{rank}. {_one_line(memory.text)} ({memory.valid_from:%Y-%m-%d})" for rank, memory in enumerate(memories, 1)
    ]
    return "\n".join(lines) or nothing


def _role(role: str) -> str:
    return _NOT_A_ROLE.sub("_", role) or "unknown"


def _unforged(text: str) -> str:
    return _ROLE_MARK.sub(" ", neutralise("\n".join(text.splitlines())))


def _one_line(text: str) -> str:
    return " ".join(neutralise(text).split())
