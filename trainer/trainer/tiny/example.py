"""One training example, and the memory text that the roles share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from memloop.wire.chat import ChatMessage, Json
from trainer.tiny.world import Fact

Role = Literal["recall", "queries", "read", "answer", "judge", "integrate", "memory", "relate", "chat"]


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and the reply to learn. `kind` names the sort of turn, for evaluation by kind.

    `raw` examples (phases A and B) have no chat format: the text of `completion` follows that of the one message.
    """

    role: Role
    kind: str
    messages: tuple[ChatMessage, ...]
    completion: str
    tools: tuple[Json, ...] = ()
    thinking: bool = False


def memory_text(facts: Iterable[Fact], *, confirmed: frozenset[Fact] = frozenset()) -> str:
    """Return the canonical memory: one sentence per fact, open ones `unknown`, confirmed ones in their tags."""
    return " ".join(f"<confirmed>{f.sentence()}</confirmed>" if f in confirmed else f.sentence() for f in facts)
