"""The curriculum: recall on bare text first, then dense prose, then the loops' own turns, short before long."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of the kinds of example, and the length of sections (in tokens).

    `near_misses` is the share of distracting facts that nearly answer; a share of sections is `crowded` with these. Of
    the facts late in a section the demonstrations leave out a share, `overlooked`.
    """

    shares: Mapping[str, float]
    shortest_section: int
    longest_section: int
    full_share: float = 0.0
    near_misses: float = 0.4
    crowded: float = 0.0
    overlooked: float = 0.0
    chunk_tokens: int = 256

    def section_tokens(self, rng: random.Random) -> int:
        """Draw a section length: the whole chunk in `full_share` of turns, else any length in the range."""
        if rng.random() < self.full_share:
            return self.chunk_tokens
        return rng.randrange(self.shortest_section, self.longest_section + 1)


def _mix(bare: float, read: float, longest: int, full_share: float, near_misses: float) -> Mix:
    """Build a mix of `bare` recall and queries and `read` turns beside a fixed blend of the other roles."""
    others = {"answer": 0.12, "judge": 0.1, "integrate": 0.22, "memory": 0.36, "chat": 0.2}
    rest = 1.0 - bare - read
    shares = {
        "recall": bare / 2,
        "queries": bare / 2,
        "read": read,
        **{role: rest * share for role, share in others.items()},
    }
    return Mix(shares, 8, longest, full_share, near_misses)


Phases: TypeAlias = tuple[tuple[float, Mix], ...]
"""Mixes, each with the progress (0 to 1) up to which it is drawn from; the last one's is 1."""

PHASES: Phases = (
    (0.05, _mix(0.3, 0.4, 32, 0.05, 0.3)),
    (0.4, _mix(0.05, 0.5, 64, 0.05, 0.4)),
    (0.6, _mix(0.02, 0.55, 160, 0.15, 0.4)),
    (1.0, _mix(0.0, 0.55, 240, 0.35, 0.4)),
)
FULL = PHASES[-1][1]
HARDEST_OF = 4
"""The hardest of this many reading turns is trained, in the phase of hard ones."""
HARD: Phases = ((1.0, replace(_mix(0.0, 0.83, 240, 0.35, 0.4), crowded=0.5)),)
"""Reading turns are drawn `HARDEST_OF` times as often, and trained as often as before."""
HASTY: Phases = ((1.0, replace(HARD[0][1], full_share=0.7, crowded=0.25, overlooked=0.8)),)
"""Demonstrations of a hasty reader, who overlooks most facts late in a section but never takes or changes another."""
WRITING = Mix({"relate": 0.7, "memory": 0.2, "chat": 0.1}, 8, 240)
SHORT = PHASES[1][1]


def mix_at(progress: float, phases: Phases = PHASES) -> Mix:
    """Return the mix at a point of the training, 0 to 1."""
    return next(mix for until, mix in phases if progress <= until or until == 1.0)
