"""Formats a decision of the memory writer in words, for comparison with a gold one."""

from __future__ import annotations

from collections.abc import Sequence

from memloop.loops.results import AddMemories, Decision


def decided_by(decision: Decision) -> tuple[str, ...]:
    """Return the decision's kind and the memories that it stores."""
    stored = decision.drafts if isinstance(decision, AddMemories) else ()
    return (decision.action, *(draft.value for draft in stored))


def is_decision(said: Sequence[str], gold: Sequence[str]) -> bool:
    """Return whether a decision (see ``decided_by``) is the gold one; memories have no order."""
    return tuple(said[:1]) == tuple(gold[:1]) and sorted(said[1:]) == sorted(gold[1:])
