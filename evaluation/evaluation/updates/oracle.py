"""A scripted writer with the right answer of each case: measures whether the right fact is among those listed."""

import re

from evaluation.updates.cases import Case
from memloop.ports import Completion, Prompt

_STORED = re.compile(r"^  stored memory (\d+) \([\d-]+\): (.*)$", re.MULTILINE)


class Oracle:
    """Names the target of its case when it is listed, else answers that the fact is new."""

    def __init__(self, case: Case) -> None:
        self._case = case

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the line of the only new memory."""
        return Completion(content=f"1: {self._relation(prompt.messages[-1].text())}")

    def _relation(self, shown: str) -> str:
        if self._case.target is None:
            return "new"
        target = self._case.stored[self._case.target]
        verb = "updates" if self._case.kind == "changed" else "same"
        listed = (number for number, text in _STORED.findall(shown) if text == f"{target.key}: {target.value}")
        return next((f"{verb} {number}" for number in listed), "new")
