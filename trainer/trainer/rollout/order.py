"""Names and order of a step's prompts and rows, the same in every run of the same recipe.

verl names prompts by random numbers and takes rows as they arrive. With names by step and number, and rows in the order
of their names, neither sampling nor the rounding of sums depends on timing, so a resumed run repeats the lost steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count


def prompt_name(step: int, number: int) -> str:
    """Return the name of the ``number``-th prompt that a step fetched. Names sort as their prompts were fetched."""
    return f"{step:08d}-{number:06d}"


def row_order(keys: Sequence[str]) -> list[int]:
    """Return the places of the rows' keys (``PROMPT_SESSION_TURN``) in the order of prompt, session and turn."""
    return sorted(range(len(keys)), key=lambda place: _parts(keys[place]))


def _parts(key: str) -> tuple[str, int, int]:
    prompt, session, turn = key.rsplit("_", 2)
    return prompt, int(session), int(turn)


class PromptNames:
    """Names the prompts that the steps of a run fetch."""

    def __init__(self) -> None:
        self._step = -1
        self._numbers = count()

    def next(self, step: int, prompts: int) -> list[str]:
        """Return names for further prompts of the step."""
        if step != self._step:
            self._step, self._numbers = step, count()
        return [prompt_name(step, next(self._numbers)) for _ in range(prompts)]
