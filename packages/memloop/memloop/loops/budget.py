"""What a run of a loop may cost at most."""

import asyncio
from typing import Literal

from memloop.ports import ChatModel, Completion, Prompt
from memloop.wire.memory import Usage


class BudgetSpent(Exception):
    """The loop must end here, with what it has. ``reason`` is the ``incomplete_details.reason`` of a long read."""

    def __init__(self, reason: Literal["max_llm_calls", "deadline"]) -> None:
        super().__init__(reason)
        self.reason: Literal["max_llm_calls", "deadline"] = reason


class Budgeted:
    """A ChatModel with a limit of calls and a deadline in seconds from now; None is no limit.

    Raises BudgetSpent in place of the first call over a limit, and when the deadline passes during a call (which is
    cancelled). Around a ``Journaled``, replayed calls count too, so the limit is one per read and not one per attempt.
    ``usage`` is what was spent so far.
    """

    def __init__(self, model: ChatModel, *, max_llm_calls: int | None = None, deadline_s: float | None = None) -> None:
        self._model = model
        self._calls_left = max_llm_calls
        self._deadline = None if deadline_s is None else asyncio.get_running_loop().time() + deadline_s
        self.usage = Usage()

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the inner model's reply. Raises BudgetSpent at a limit."""
        if self._deadline is not None and asyncio.get_running_loop().time() >= self._deadline:
            raise BudgetSpent("deadline")
        if self._calls_left == 0:
            raise BudgetSpent("max_llm_calls")
        if self._calls_left is not None:
            self._calls_left -= 1
        timeout = asyncio.timeout_at(self._deadline)
        try:
            async with timeout:
                completion = await self._model.complete(prompt)
        except TimeoutError:
            if timeout.expired():
                raise BudgetSpent("deadline") from None
            raise
        finally:
            del timeout  # it holds the task, which holds an error whose traceback holds this frame
        self.usage += completion.usage
        return completion
