"""Formats a decision of the memory writer in words, for comparison with a gold one."""

from __future__ import annotations

from memloop.loops.results import AddMemories, Decision


def decided_by(decision: Decision) -> tuple[str, ...]:
    """Return the decision's kind and the memories that it stores."""
    stored = decision.drafts if isinstance(decision, AddMemories) else ()
    return (decision.action, *(draft.value for draft in stored))
