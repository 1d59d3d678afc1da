"""A decision of the memory writer in words, so that it can be compared with a gold one."""

from __future__ import annotations

from memloop.loops.decisions import AddMemories, Decision


def told_by(decision: Decision) -> tuple[str, ...]:
    """Its kind, and what it stores."""
    stored = decision.drafts if isinstance(decision, AddMemories) else ()
    return (decision.action, *(draft.value for draft in stored))
