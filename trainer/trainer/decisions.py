"""A decision of the memory writer in words, so that it can be compared with a gold one."""

from __future__ import annotations

from memloop.loops.decisions import AddMemories, BufferTurns, Decision, IgnoreTurns


def told_by(decision: Decision) -> tuple[str, ...]:
    """Its kind, and what it stores."""
    match decision:
        case AddMemories(drafts=drafts):
            return ("add", *(draft.value for draft in drafts))
        case BufferTurns():
            return ("buffer",)
        case IgnoreTurns():
            return ("ignore",)
        case _:
            return ("invalid",)
